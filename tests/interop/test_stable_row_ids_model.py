"""A table of stable row ids in the hands of both libraries, against a model: an id is one row's, for ever.

Every row has a number of its own, so that the model knows it again wherever it lies. Whatever is done by whom, a row
keeps its id, no id is given twice, and looking an id up finds its row or, once it is deleted, nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import lance_ops
from lance_ops.writing.create_append_overwrite import append
from lance_ops.writing.fragment_limits import FragmentLimits

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

LIBRARIES = st.sampled_from([lance_ops, lance])
MODULUS = st.integers(2, 7)
LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@dataclass(frozen=True)
class Row:
    text: str
    created_at: int
    updated_at: int


class StableRowIds(RuleBasedStateMachine):
    """`rows` is what the newest version holds by number, `past` what each version held, `ids` every id ever seen."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="stable-row-ids-"))
        self.uri = str(self.folder / "data.lance")
        self.rows: dict[int, Row] = {}
        self.past: dict[int, dict[int, Row]] = {0: {}}
        self.ids: dict[int, int] = {}
        self.next_number = 0
        self._write(lance_ops, "create", 5)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @property
    def version(self) -> int:
        return lance_ops.dataset(self.uri).version

    def _new_rows(self, count: int) -> pa.Table:
        numbers = list(range(self.next_number, self.next_number + count))
        self.next_number += count
        return pa.table({"n": numbers, "text": [f"t{number}" for number in numbers]})

    def _added(self, table: pa.Table) -> None:
        version = self.version
        for row in table.to_pylist():
            self.rows[row["n"]] = Row(row["text"], version, version)

    def _write(self, library: Any, mode: str, count: int) -> None:
        table = self._new_rows(count)
        library.write_dataset(table, self.uri, mode=mode, max_rows_per_file=4, enable_stable_row_ids=True)
        self._added(table)

    @rule(library=LIBRARIES, count=st.integers(1, 9))
    def append(self, library: Any, count: int) -> None:
        self._write(library, "append", count)

    @rule(library=LIBRARIES, count=st.integers(1, 9))
    def append_behind_the_others_append(self, library: Any, count: int) -> None:
        stale = lance_ops.dataset(self.uri).snapshot
        self._write(library, "append", count)
        table = self._new_rows(count)
        append(stale, table.to_batches(), FragmentLimits(), {})
        self._added(table)

    @rule(library=LIBRARIES, modulus=MODULUS, rest=st.integers(0, 6))
    def delete(self, library: Any, modulus: int, rest: int) -> None:
        library.dataset(self.uri).delete(f"n % {modulus} = {rest}")
        self.rows = {number: row for number, row in self.rows.items() if number % modulus != rest}

    @rule(library=LIBRARIES, modulus=MODULUS, rest=st.integers(0, 6))
    def update(self, library: Any, modulus: int, rest: int) -> None:
        before = self.version
        library.dataset(self.uri).update({"text": f"'by {before}'"}, where=f"n % {modulus} = {rest}")
        self.rows = {
            number: Row(f"by {before}", row.created_at, before + 1) if number % modulus == rest else row
            for number, row in self.rows.items()
        }

    @rule(library=LIBRARIES, numbers=st.sets(st.integers(0, 40), min_size=1, max_size=6), count=st.integers(0, 3))
    def merge(self, library: Any, numbers: set[int], count: int) -> None:
        """Update some rows and insert others, in one source."""
        version = self.version + 1
        known = sorted(number for number in numbers if number in self.rows)
        new = self._new_rows(count).column("n").to_pylist()
        if not (known or new):
            return
        table = pa.table({"n": [*new, *known], "text": pa.array([f"merged {version}"] * (len(new) + len(known)))})
        merge = library.dataset(self.uri).merge_insert("n")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(table)
        for number in table.column("n").to_pylist():
            created_at = self.rows[number].created_at if number in self.rows else version
            self.rows[number] = Row(f"merged {version}", created_at, version)

    @rule(library=LIBRARIES, rows=st.sampled_from([5, 12, 1000]))
    def compact(self, library: Any, rows: int) -> None:
        library.dataset(self.uri).optimize.compact_files(
            target_rows_per_fragment=rows, materialize_deletions_threshold=0.0
        )

    @precondition(lambda self: len(self.past) > 4)
    @rule(library=LIBRARIES)
    def overwrite(self, library: Any) -> None:
        self.rows = {}
        self._write(library, "overwrite", 3)

    @precondition(lambda self: len(self.past) > 2)
    @rule(library=LIBRARIES, data=st.data())
    def restore(self, library: Any, data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(sorted(self.past)[1:]))
        library.dataset(self.uri, version=version).restore()
        self.rows = dict(self.past[version])

    @invariant()
    def all_is_as_in_the_model(self) -> None:
        self._both_read_the_model()
        self._an_id_finds_its_row_or_nothing()
        self._the_feed_tells_the_difference()

    def _both_read_the_model(self) -> None:
        ours, theirs = lance_ops.dataset(self.uri), lance.dataset(self.uri)
        table = ours.to_table(["n", "text", *LINEAGE])
        assert table.equals(theirs.to_table(["n", "text", *LINEAGE]))
        assert len(table) == len(self.rows)
        for number, text, row_id, created_at, updated_at in zip(*table.to_pydict().values(), strict=True):
            assert Row(text, created_at, updated_at) == self.rows[number]
            assert self.ids.setdefault(number, row_id) == row_id
        assert len(set(self.ids.values())) == len(self.ids)
        assert ours.snapshot.manifest.next_row_id > max(self.ids.values())
        ours.validate()
        theirs.validate()
        self.past[ours.version] = dict(self.rows)

    def _an_id_finds_its_row_or_nothing(self) -> None:
        asked = [*self.ids.values(), max(self.ids.values()) + 1]
        found = lance_ops.dataset(self.uri)._take_rows(asked, columns=["n"])
        assert found.column("n").to_pylist() == [number for number in self.ids if number in self.rows]
        assert found.equals(lance.dataset(self.uri)._take_rows(asked, columns=["n"]))

    def _the_feed_tells_the_difference(self) -> None:
        version = self.version
        for begin in sorted(self.past)[-3:]:
            before, delta = self.past[begin], lance_ops.dataset(self.uri).delta(begin)
            inserted = delta.get_inserted_rows().read_all().column("n").to_pylist()
            updated = delta.get_updated_rows().read_all().column("n").to_pylist()
            deleted = delta.get_deleted_row_ids().read_all().column("_rowid").to_pylist()
            assert set(inserted) == self.rows.keys() - before.keys()
            assert set(updated) == {n for n in self.rows.keys() & before.keys() if self.rows[n] != before[n]}
            assert deleted == sorted(self.ids[number] for number in before.keys() - self.rows.keys())
            assert begin <= version


TestStableRowIds = StableRowIds.TestCase
TestStableRowIds.settings = settings(max_examples=6, stateful_step_count=12)

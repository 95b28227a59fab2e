"""Checks of a version in both libraries: its rows by scans, indices, positions and ids, and its change feed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import lance
import pyarrow as pa

import lance_ops
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from tests.interop import table_values as values
from tests.interop.table_lines import Line
from tests.interop.table_model import KEY, State

__all__ = ["check_feed", "check_newest", "check_nothing_stray", "check_rows", "check_ways_to_read"]

LIBRARIES = (lance_ops, lance)
LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def check_rows(line: Line, version: int) -> None:
    """Check that both libraries scan the model's rows."""
    expected = line.states[version].records()
    ours, theirs = line.open(lance_ops, version), line.open(lance, version)
    table = ours.to_table()
    assert table.sort_by(KEY).to_pylist() == expected, version
    assert table.equals(theirs.to_table()), version
    assert ours.count_rows() == theirs.count_rows() == len(expected)


def check_newest(line: Line) -> None:
    """Check the table's metadata in the newest version."""
    state, ours, theirs = line.newest, line.open(lance_ops), line.open(lance)
    assert ours.version == theirs.version == line.version
    theirs.validate()
    assert ours.schema.equals(theirs.schema) and ours.schema.equals(state.schema)
    assert ours.config() == theirs.config() == state.config


def check_ways_to_read(line: Line, version: int, *, stable_row_ids: bool) -> None:
    """Check that filters, indices, positions and row ids lead to the rows that a scan finds."""
    state, ours, theirs = line.states[version], line.open(lance_ops, version), line.open(lance, version)
    ours.validate()
    _check_positions(ours, theirs)
    if stable_row_ids:
        _check_lineage(line, state, ours, theirs)
    else:
        _check_addresses(ours, theirs)
    _check_indices(state, ours, theirs)


def check_feed(line: Line, begin: int, end: int) -> None:
    """Check that the change feed between two versions equals the difference of their rows."""
    before, after = _by_identity(line.states[begin]), _by_identity(line.states[end])
    delta = line.open(lance_ops, end).delta(begin)
    inserted = delta.get_inserted_rows().read_all().column(KEY).to_pylist()
    updated = delta.get_updated_rows().read_all().column(KEY).to_pylist()
    deleted = delta.get_deleted_row_ids().read_all().column("_rowid").to_pylist()
    assert sorted(inserted) == sorted(key for _, key in after.keys() - before.keys())
    changed = [row for row in after.keys() & before.keys() if after[row] != before[row]]
    assert sorted(updated) == sorted(key for _, key in changed)
    assert deleted == sorted(line.ids[row] for row in before.keys() - after.keys())


def check_nothing_stray(line: Line, lines: Iterable[Line]) -> None:
    """Check that a full clean-up left only files that a version of some branch names."""
    named = NamedFiles(str(line.folder))
    for other in lines:
        for version in other.retained:
            named.add(other.open(lance_ops, version).snapshot.manifest, str(other.folder))
    assert [path for path in sorted(line.files()) if path not in named] == []


def _check_positions(ours: Any, theirs: Any) -> None:
    table = ours.to_table()
    positions = pa.array([*range(len(table) - 1, -1, -3), *range(min(len(table), 2))], pa.int64())
    assert ours.take(positions).equals(table.take(positions))
    assert theirs.take(positions).equals(table.take(positions))


def _check_lineage(line: Line, state: State, ours: Any, theirs: Any) -> None:
    """Check that each row keeps its id and its creating and updating versions; a deleted row's id finds nothing."""
    table = ours.to_table([KEY, *LINEAGE])
    assert table.equals(theirs.to_table([KEY, *LINEAGE]))
    for key, row_id, created_at, updated_at in zip(*table.to_pydict().values(), strict=True):
        row = state.rows[key]
        assert (created_at, updated_at) == (row.created_at, row.updated_at), key
        assert line.ids.setdefault((created_at, key), row_id) == row_id
    assert len(set(line.ids.values())) == len(line.ids)
    if ours.version == line.version:
        assert ours.snapshot.manifest.next_row_id > max(line.ids.values(), default=-1)
    there = _by_identity(state)
    for dataset in (ours, theirs):
        found = dataset._take_rows([*line.ids.values()], columns=[KEY]).column(KEY).to_pylist()
        assert found == [row[1] for row in line.ids if row in there]


def _check_addresses(ours: Any, theirs: Any) -> None:
    table = ours.to_table(with_row_id=True)
    assert table.equals(theirs.to_table(with_row_id=True))
    asked = table.column("_rowid").to_pylist()[::-2]
    for dataset in (ours, theirs):
        assert dataset._take_rows(asked).to_pylist() == table.drop_columns(["_rowid"]).to_pylist()[::-2]


def _check_indices(state: State, ours: Any, theirs: Any) -> None:
    """Check that each index returns, for the fragments it covers, the rows that a scan finds."""
    searching = {
        index.name: [theirs, ours] if index.index_type == "BTree" else [theirs] for index in ours.describe_indices()
    }
    for leaf in state.leaves:
        if leaf.index_name not in searching:
            continue
        covered = searching[leaf.index_name][-1].stats.index_stats(leaf.index_name)
        for condition in values.probes(leaf):
            expected = state.records(condition)
            for dataset in (ours, theirs):
                if covered["num_indexed_rows"] and any(dataset is each for each in searching[leaf.index_name]):
                    assert "ScalarIndexQuery" in dataset.scanner(filter=condition.sql).explain_plan(), condition
                assert dataset.to_table(filter=condition.sql).sort_by(KEY).to_pylist() == expected, condition
                assert dataset.count_rows(condition.sql) == len(expected), condition


def _by_identity(state: State) -> dict[tuple[int, int], Any]:
    """Return the rows by creating version and key: a row that is deleted and inserted again is another row."""
    return {(row.created_at, key): row for key, row in state.rows.items()}

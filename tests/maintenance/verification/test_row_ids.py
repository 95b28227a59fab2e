"""Ranges of row ids find the same shared ids as one sweep over all of them, in bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_ops
from lance_ops.maintenance.verification import DamageKind, VerificationOptions, plan_verification, verify
from lance_ops.maintenance.verification.checks import find_shared_row_ids, row_id_checks
from lance_ops.maintenance.verification.verification_plan import RowIdsTask
from lance_ops.snapshot import Snapshot
from lance_ops.table.rows import RowIds, encode_row_ids
from tests.maintenance.verification.planted_damages import set_row_ids

ROWS = 8
NEXT_ID = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Five fragments of eight rows, the second with two deleted rows."""
    uri = str(tmp_path_factory.mktemp("ids") / "table")
    table = pa.table({"x": range(5 * ROWS)})
    made = lance_ops.write_dataset(table, uri, max_rows_per_file=ROWS, enable_stable_row_ids=True)
    made.delete("x in (9, 10)")
    return made.snapshot


def with_ids(snapshot: Snapshot, ids: Sequence[Sequence[int]]) -> Snapshot:
    """Return the version with other row ids in its fragments."""
    fragments = {
        fragment.id: fragment.with_sequences(row_ids=encode_row_ids(RowIds.of(np.array(its, np.uint64))))
        for fragment, its in zip(snapshot.fragments, ids, strict=True)
    }
    manifest = replace(
        snapshot.manifest, fragments=snapshot.manifest.fragments.with_changes(fragments), next_row_id=NEXT_ID
    )
    return snapshot.with_manifest(manifest)


def live_ids(ids: Sequence[Sequence[int]]) -> list[list[int]]:
    return [
        [each for at, each in enumerate(its) if (number, at) not in {(1, 1), (1, 2)}] for number, its in enumerate(ids)
    ]


fragments_ids = st.lists(
    st.one_of(
        st.lists(st.integers(0, NEXT_ID - 1), min_size=ROWS, max_size=ROWS),
        st.integers(0, NEXT_ID - ROWS).map(lambda first: list(range(first, first + ROWS))),
    ),
    min_size=5,
    max_size=5,
)


@given(ids=fragments_ids, cuts=st.lists(st.integers(1, NEXT_ID - 1), max_size=6), limit=st.integers(1, 40))
def test_any_partition_finds_what_one_sweep_finds(
    whole: Snapshot, ids: list[list[int]], cuts: list[int], limit: int
) -> None:
    snapshot = with_ids(whole, ids)
    bounds = [0, *sorted(set(cuts)), NEXT_ID]
    at_once = find_shared_row_ids(snapshot, 0, NEXT_ID, 1000)
    parts = [
        shared
        for start, stop in itertools.pairwise(bounds)
        for shared in find_shared_row_ids(snapshot, start, stop, limit)
    ]
    assert row_id_checks._first_pairs(parts) == at_once
    live = [each for its in live_ids(ids) for each in its]
    assert bool(at_once) == (len(set(live)) < len(live))
    numbers = [fragment.id for fragment in snapshot.fragments]
    for shared in at_once:
        one, other = (live_ids(ids)[numbers.index(number)] for number in (shared.first, shared.second))
        assert shared.row_id in one and shared.row_id in other
        assert shared.first != shared.second or one.count(shared.row_id) > 1


@given(num_runs=st.integers(1, 200))
def test_the_ranges_of_a_plan_cover_every_id_once(whole: Snapshot, num_runs: int) -> None:
    plan = plan_verification(whole, VerificationOptions(max_row_id_runs_per_task=num_runs))
    tasks = sorted((task.start, task.stop) for task in plan.tasks if isinstance(task, RowIdsTask))
    assert [tasks[0][0], *(stop for _, stop in tasks)] == [*(start for start, _ in tasks), whole.manifest.next_row_id]
    assert all(start < stop for start, stop in tasks)
    if num_runs == 1:
        assert len(tasks) > 10


def test_a_range_with_too_many_runs_is_searched_in_halves(whole: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    scattered = [[(at * 37 + number * 7) % NEXT_ID for at in range(ROWS)] for number in range(5)]
    snapshot = with_ids(whole, scattered)
    held: list[int] = []
    real = row_id_checks._live_runs

    def observed(*args: object) -> object:
        runs = real(*args)  # type: ignore[arg-type]
        held.append(0 if runs is None else len(runs[0]))
        return runs

    monkeypatch.setattr(row_id_checks, "_live_runs", observed)
    found = find_shared_row_ids(snapshot, 0, NEXT_ID, 6)
    assert max(held) <= 7  # those of the range, and the one before it that reaches furthest
    assert len(held) > 5
    assert found == find_shared_row_ids(snapshot, 0, NEXT_ID, 1000)


def test_tasks_of_one_id_report_a_pair_of_fragments_once(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    made = lance_ops.write_dataset(
        pa.table({"x": range(2 * ROWS)}), uri, max_rows_per_file=ROWS, enable_stable_row_ids=True
    )
    set_row_ids(Path(uri), 1, [8, 1, 2, 3, 12, 13, 14, 15])
    for options in (VerificationOptions(), VerificationOptions(max_row_id_runs_per_task=1)):
        snapshot = Snapshot.open(uri)
        assert len(plan_verification(snapshot, options).tasks) >= 3
        [damage] = verify(snapshot, options).damages
        assert (damage.kind, damage.fragment_id) == (DamageKind.ROW_IDS, 1)
        assert "live rows of fragments 0 and 1 share the row id" in damage.detail
    assert made.version == 1

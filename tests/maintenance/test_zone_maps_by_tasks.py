"""Zone maps built, extended and moved by tasks: messages without files, and the answers of a scan."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

import lance_ops
from lance_ops.core.errors import CorruptFile
from lance_ops.indices import IndexConfig
from lance_ops.indices.zonemap import ZoneMapIndex
from lance_ops.maintenance.indexing import task_build
from lance_ops.maintenance.indexing.reindex import create_scalar_index, optimize_indices
from lance_ops.maintenance.indexing.remap_tasks import remap_segment
from lance_ops.maintenance.indexing.task_shares import TaskSizes
from lance_ops.reading import open_index
from lance_ops.runners import InThreads
from lance_ops.snapshot import Snapshot
from lance_ops.table.rows import NewFragment, OldFragment, RewrittenGroup, RowAddressMap, offsets_in
from tests.maintenance.test_indexing_by_tasks import Elsewhere, check_nothing_is_left, ids, rows, segment_of

SMALL = TaskSizes(least_bytes=1, least_remap_bytes=1, task_bytes=64 << 10)
WHOLE = replace(SMALL, task_bytes=1 << 30)
ZONES = IndexConfig("ZONEMAP", {"rows_per_zone": 100})
NUM_ROWS = 20_000
PREDICATES = ("id < 50", "id >= 4400 AND id < 4510", "id = 19999", "id IN (1, 9000)", "NOT (id > 10)")


@pytest.fixture
def table(dataset_uri: str) -> lance_ops.LanceDataset:
    """A dataset of five fragments, with deleted rows."""
    made = lance_ops.write_dataset(rows(0, NUM_ROWS), dataset_uri, max_rows_per_file=4500)
    made.delete("id % 23 = 0 OR (id > 300 AND id < 700)")
    return made


def zones_of(snapshot: Snapshot, name: str) -> tuple[list[Any], Any]:
    index = open_index(snapshot, segment_of(snapshot, name))
    assert isinstance(index, ZoneMapIndex)
    return list(index.zones.zones()), index.zones.nulls


def check_answers(uri: str) -> None:
    dataset = lance_ops.dataset(uri)
    for predicate in PREDICATES:
        assert "(ZONEMAP)" in dataset.scanner(filter=predicate).explain_plan()
        assert ids(dataset, predicate) == ids(dataset, predicate, use_scalar_index=False), predicate
    assert dataset.verify().ok


@pytest.mark.parametrize("column", ["id", "key", "float", "text", "nested.key"])
def test_tasks_describe_fragments_as_one_process_does(table: lance_ops.LanceDataset, column: str) -> None:
    runner = Elsewhere()
    alone = create_scalar_index(table.snapshot, column, ZONES, "alone")
    built = create_scalar_index(alone, column, ZONES, "shared", runner=runner, sizes=WHOLE)
    assert (runner.function_names, runner.num_tasks) == (["execute"], [1])
    assert zones_of(built, "shared") == zones_of(built, "alone")
    assert segment_of(built, "shared").details == segment_of(built, "alone").details
    check_nothing_is_left(built)


def test_fragments_may_be_cut_between_tasks_and_only_zones_travel(table: lance_ops.LanceDataset) -> None:
    runner = Elsewhere()
    built = create_scalar_index(table.snapshot, "id", ZONES, runner=runner, sizes=SMALL)
    assert runner.function_names == ["execute"] and runner.num_tasks[0] > 3
    zones, nulls = zones_of(built, "id_idx")
    live = table.count_rows()
    assert live / 100 <= len(zones) <= live / 100 + 5 + runner.num_tasks[0]
    assert nulls == {}
    for first, second in itertools.pairwise(zones):
        assert (first.fragment_id, first.stop) <= (second.fragment_id, second.start)
    assert runner.returned_bytes < 100 * len(zones) + 2000 * runner.num_tasks[0]
    check_nothing_is_left(built)
    check_answers(table.uri)


def test_tasks_extend_a_zone_map_as_one_process_does(table: lance_ops.LanceDataset) -> None:
    for name in ("alone", "shared"):
        table.create_scalar_index("id", ZONES, name)
    lance_ops.write_dataset(rows(NUM_ROWS, NUM_ROWS + 900), table, mode="append", max_rows_per_file=400)
    table = lance_ops.dataset(table.uri)
    table.update({"id": "id + 100000"}, where="id = 5")
    runner = Elsewhere()
    extended = optimize_indices(table.snapshot, ["shared"], runner=runner, sizes=WHOLE)
    extended = optimize_indices(extended, ["alone"])
    assert runner.function_names == ["execute"]
    assert zones_of(extended, "shared") == zones_of(extended, "alone")
    check_nothing_is_left(extended)
    check_answers(table.uri)


def test_tasks_move_zones_as_one_process_does(table: lance_ops.LanceDataset) -> None:
    table.create_scalar_index("float", ZONES)
    snapshot, segment = table.snapshot, segment_of(table.snapshot, "float_idx")
    old = [
        OldFragment(each.id, each.physical_rows, offsets_in(snapshot.deletion_vector(each)))
        for each in snapshot.fragments
    ]
    survivors = sum(each.num_rows for each in old)
    new = (NewFragment(50, 7001), NewFragment(51, survivors - 7001))
    moves = RowAddressMap((RewrittenGroup(tuple(old), new),))
    runner = Elsewhere()
    found = []
    for given in (runner, None):
        directory = f"_indices/{given is None}"
        files = remap_segment(snapshot, segment, moves, snapshot.store.child(directory), given, SMALL)
        found.append([snapshot.store.get(f"{directory}/{file.path}").to_pybytes() for file in files])
    assert runner.function_names == ["execute"]
    assert found[0] == found[1]


def test_a_failed_task_leaves_the_table_as_it_was(
    table: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []
    function = task_build.execute

    def fail_at_the_third(task: Any) -> object:
        calls.append(task)
        if len(calls) == 3:
            raise CorruptFile("data/x.lance", "footer", "torn")
        return function(task)

    monkeypatch.setattr(task_build, "execute", fail_at_the_third)
    with pytest.raises(CorruptFile, match="torn"):
        create_scalar_index(table.snapshot, "id", ZONES, runner=InThreads(2), sizes=SMALL)
    assert lance_ops.dataset(table.uri).version == table.version
    check_nothing_is_left(table.snapshot)


@pytest.mark.parametrize("stable", [False, True])
def test_rows_in_another_order_are_scanned_until_they_are_described_again(dataset_uri: str, stable: bool) -> None:
    made = lance_ops.write_dataset(rows(0, 6000), dataset_uri, max_rows_per_file=1000, enable_stable_row_ids=stable)
    made.create_scalar_index("key", ZONES, "zones")
    made.create_scalar_index("key", "BTREE", "tree")
    made.delete("id % 7 = 0")
    expected = sorted(ids(made, "key = 77 OR key < 5"))
    made.optimize.compact_files(cluster_by=["key"])
    clustered = lance_ops.dataset(dataset_uri)
    assert clustered.stats.index_stats("zones")["num_indexed_rows"] == 0
    assert clustered.stats.index_stats("tree")["num_unindexed_rows"] == 0
    assert sorted(ids(clustered, "key = 77 OR key < 5")) == expected != []
    clustered.drop_index("tree")
    assert sorted(ids(clustered, "key = 77 OR key < 5")) == expected
    clustered.optimize.optimize_indices()
    assert sorted(ids(clustered, "key = 77 OR key < 5")) == expected
    assert clustered.stats.index_stats("zones")["num_unindexed_rows"] == 0
    assert clustered.verify().ok

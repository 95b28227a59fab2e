"""Small neighbouring fragments are scanned together, with the answer of a scan that reads each by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.threads import map_ordered
from lance_ops.errors import CorruptFile, InvalidInput
from lance_ops.file import Budget
from lance_ops.reading import ScanRequest, joined_blocks, joined_fragments, scan_execution
from lance_ops.reading.joined_blocks import BlockJoiner
from lance_ops.reading.scan_plan import plan_scan
from lance_ops.snapshot.fragment_reader import FragmentReader
from lance_ops.store import View
from lance_ops.store.local.local_store import LocalStore
from tests.reading.short_fragments import FRAGMENTS, ROWS, SCANS, made, table


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("gone", ["false", "id % 10 = 3", "id >= 20 AND id < 60"])
@pytest.mark.parametrize("options", SCANS, ids=str)
def test_a_joint_read_has_the_batches_of_separate_ones(
    tmp_path: Path,
    options: dict[str, Any],
    gone: str,
    version: str,
    groups: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = made(tmp_path / "t", data_storage_version=version, enable_stable_row_ids=True)
    dataset.delete(gone)
    groups.clear()
    found = list(dataset.scanner(**options).to_batches())
    assert groups, "nothing was read together"
    whole = dataset.scanner(**options).to_table()
    counted = dataset.count_rows(options.get("filter"))
    monkeypatch.setattr(joined_blocks, "_MAX_JOINED", 1)
    groups.clear()
    assert found == list(dataset.scanner(**options).to_batches())
    assert whole == dataset.scanner(**options).to_table()
    assert counted == dataset.count_rows(options.get("filter"))
    assert not groups


def test_a_whole_table_has_one_chunk_for_what_was_read_together(tmp_path: Path, groups: list[int]) -> None:
    dataset = made(tmp_path / "t")
    dataset.delete("id % 10 = 3")
    groups.clear()
    assert dataset.to_table()["id"].num_chunks == len(groups) == 1
    assert dataset.to_table(with_row_id=True)["id"].num_chunks == FRAGMENTS


INDEXED_SCANS: list[dict[str, Any]] = [
    {"filter": "id >= 30 AND id < 200", "with_row_id": True, "with_row_address": True},
    {"filter": "id >= 30 AND id < 200 AND few = 'kind 1'", "columns": ["list", "parts"]},
    {"filter": "id >= 30 AND id < 200 AND few = 'kind 1'", "columns": ["list", "id"], "late_materialization": True},
    {"filter": "id >= 0 AND text = 'none'"},
    {"filter": "id IN (3, 31, 77, 78, 79, 150, 239)", "columns": ["text"]},
    {"filter": "id >= 15 AND id < 45", "columns": ["same", "id"], "batch_size": 7, "strict_batch_size": True},
    {"filter": "id >= 30", "offset": 33},
    {"filter": "id >= 30", "columns": [], "with_row_address": True},
]


@pytest.mark.parametrize("gone", ["false", "id % 10 = 3", "id >= 20 AND id < 60"])
@pytest.mark.parametrize("options", INDEXED_SCANS, ids=str)
def test_rows_that_an_index_finds_are_read_together_with_the_batches_of_separate_reads(
    tmp_path: Path, options: dict[str, Any], gone: str, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table()
    dataset = made(tmp_path / "t", rows[:180], enable_stable_row_ids=True)
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(rows[180:], max_rows_per_file=ROWS // FRAGMENTS)
    dataset.delete(gone)
    groups.clear()
    assert "ScalarIndexQuery" in dataset.scanner(**options).explain_plan()
    found = list(dataset.scanner(**options).to_batches())
    num_rows = dataset.count_rows(options["filter"])
    together = sum(groups)
    monkeypatch.setattr(joined_blocks, "_MAX_JOINED", 1)
    groups.clear()
    assert found == list(dataset.scanner(**options).to_batches())
    assert num_rows == dataset.count_rows(options["filter"])
    assert together and not groups


def test_rows_that_an_index_finds_form_groups_apart_from_whole_fragments(tmp_path: Path, groups: list[int]) -> None:
    rows = pa.table({"n": range(100)})
    dataset = lance_ops.write_dataset(rows[:60], tmp_path / "t", max_rows_per_file=10)
    dataset.create_scalar_index("n", "BTREE")
    dataset.insert(rows[60:], max_rows_per_file=10)
    groups.clear()
    assert dataset.to_table(filter="n >= 5")["n"].to_pylist() == [*range(5, 100)]
    assert groups == [6, 4]


def test_rows_that_an_index_finds_count_by_the_bytes_that_they_need(tmp_path: Path, groups: list[int]) -> None:
    numbers = np.random.default_rng(6).permutation(800 << 10)
    dataset = lance_ops.write_dataset(pa.table({"n": numbers}), tmp_path / "t", max_rows_per_file=200 << 10)
    dataset.create_scalar_index("n", "BTREE")
    for few in (80, 400):  # a quarter of them in each fragment, 8 KiB for each
        assert sorted(dataset.to_table(filter=f"n < {few}")["n"].to_pylist()) == [*range(few)]
        assert groups == [4]
        groups.clear()
    assert dataset.to_table(filter="n < 4000").num_rows == 4000
    assert groups == []


def test_long_values_that_an_index_finds_count_by_their_share_of_the_file(tmp_path: Path, groups: list[int]) -> None:
    rng = np.random.default_rng(6)
    long = [rng.bytes(100 << 10) for _ in range(60)]
    rows = pa.table({"n": range(60), "b": pa.array(long, pa.binary())})
    dataset = lance_ops.write_dataset(rows, tmp_path / "t", max_rows_per_file=20)
    dataset.create_scalar_index("n", "BTREE")
    for rows_each, joined in ((2, [3]), (20, [])):
        groups.clear()
        chosen = [at for at in range(60) if at % 20 < rows_each]
        found = dataset.to_table(filter=f"n IN ({', '.join(map(str, chosen))})")
        assert found["b"].to_pylist() == [long[at] for at in chosen]
        assert groups == joined


def test_groups_end_at_their_limits_and_before_fragments_that_are_read_alone(
    tmp_path: Path, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"s": [f"text {number}" for number in range(40)]})
    for at, length in enumerate((1, 1, 1, 30, 1, 1, 1, 1, 1, 1)):
        lance_ops.write_dataset(rows[:length], tmp_path / "t", mode="append" if at else "create")
    dataset = lance_ops.dataset(tmp_path / "t")
    sizes = [fragment.files[0].file_size_bytes for fragment in dataset.snapshot.fragments]
    assert len({*sizes[:3], *sizes[4:]}) == 1 and sizes[3] > sizes[0]
    assert dataset.to_table().num_rows == 39
    assert groups == [10]
    groups.clear()
    monkeypatch.setattr(joined_blocks, "_SMALL_BYTES", sizes[0])
    monkeypatch.setattr(joined_blocks, "_MAX_JOINED", 4)
    assert dataset.to_table().num_rows == 39
    assert groups == [3, 4, 2]
    groups.clear()
    monkeypatch.setattr(joined_blocks, "JOINED_BYTES", 3 * sizes[0])
    assert dataset.to_table().num_rows == 39
    assert groups == [3, 3, 3]


@pytest.mark.parametrize(("fragments", "expected"), [(8, [8]), (20, [20]), (25, [13, 12]), (40, [20, 20])])
def test_groups_have_equally_many_fragments(
    tmp_path: Path, groups: list[int], monkeypatch: pytest.MonkeyPatch, fragments: int, expected: list[int]
) -> None:
    monkeypatch.setattr(scan_execution, "available_cores", lambda: 2)
    table = pa.table({"n": range(fragments)})
    assert lance_ops.write_dataset(table, tmp_path / "t", max_rows_per_file=1).to_table().equals(table)
    assert sorted(groups, reverse=True) == expected


def test_rows_count_by_their_decoded_size(tmp_path: Path, groups: list[int]) -> None:
    rows = pa.table({"n": pa.array([7] * (800 << 10), pa.int8())})
    dataset = lance_ops.write_dataset(rows, tmp_path / "t", max_rows_per_file=200 << 10)
    assert dataset.to_table().num_rows == len(rows)
    assert groups == [4]
    groups.clear()
    dataset = lance_ops.write_dataset(rows, tmp_path / "t", mode="overwrite", max_rows_per_file=800 << 10)
    dataset.insert(rows)
    assert dataset.to_table().num_rows == 2 * len(rows)
    assert groups == []


def test_a_file_does_not_count_if_few_of_its_bytes_are_read(tmp_path: Path, groups: list[int]) -> None:
    rng = np.random.default_rng(6)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=600 << 10), pa.float32()), 600)
    rows = pa.table({"n": np.arange(1 << 10), "v": vectors, "s": [f"text {number}" for number in range(1 << 10)]})
    dataset = lance_ops.write_dataset(rows, tmp_path / "t", max_rows_per_file=512)
    assert min(fragment.files[0].file_size_bytes for fragment in dataset.snapshot.fragments) > 1 << 20
    assert dataset.to_table(columns=["n"])["n"].to_pylist() == list(range(1 << 10))
    assert dataset.to_table(columns=["n"], filter="n % 500 = 7")["n"].to_pylist() == [7, 507, 1007]
    assert groups == [2, 2]
    groups.clear()
    assert dataset.to_table().num_rows == dataset.to_table(columns=["n", "s"]).num_rows == 1 << 10
    assert groups == []


def test_other_scans_read_each_fragment_by_itself(dataset_uri: str, tmp_path: Path, groups: list[int]) -> None:
    rows = table().select(["id", "text"])
    for version in ("0.1", "2.0"):
        assert made(tmp_path / version, rows, data_storage_version=version).to_table()["id"] == rows["id"]
    kinds = rows.set_column(1, "text", rows["text"].combine_chunks().dictionary_encode())
    assert made(tmp_path / "dictionary", kinds).to_table()["id"] == rows["id"]
    dataset = made(dataset_uri, rows)
    assert dataset.to_table(limit=200, filter="id >= 0").num_rows == 200
    assert dataset.to_table(filter="_rowaddr >= 0").num_rows == ROWS
    assert dataset.to_table(io_buffer_size=1 << 20).num_rows == ROWS
    dataset.add_columns({"more": "id * 2"})
    assert dataset.to_table().num_rows == ROWS
    assert groups == []
    assert dataset.to_table(columns=["id", "text"])["id"] == rows["id"]


def test_a_scan_of_bounded_memory_reads_small_fragments_together_if_they_fit(
    tmp_path: Path, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = made(tmp_path / "t")
    assert dataset.to_table(io_buffer_size=joined_blocks.JOINED_BYTES - 1).equals(table())
    assert groups == []
    monkeypatch.setattr(joined_blocks, "_MAX_JOINED", 4)
    ahead: list[int] = []

    def watched(function: Any, items: Any, workers: int, readahead: int) -> Any:
        ahead.append(readahead)
        return map_ordered(function, items, workers, readahead)

    monkeypatch.setattr(scan_execution, "map_ordered", watched)
    for blocks in (1, 2, 3):
        found = dataset.to_table(io_buffer_size=blocks * joined_blocks.JOINED_BYTES, batch_readahead=3)
        assert found.equals(table())
    assert groups == [4, 4, 4] * 3
    assert ahead == [1, 2, 3]


def test_tasks_of_changes_read_small_fragments_together(tmp_path: Path, groups: list[int]) -> None:
    dataset = made(tmp_path / "t")
    dataset.delete("number % 2 = 0 OR number IS NULL")
    assert groups == [FRAGMENTS]
    groups.clear()
    dataset.update({"text": "'odd'"}, where="number % 2 = 1")
    assert groups == [FRAGMENTS]
    groups.clear()
    odd = [number is not None and number % 2 == 1 for number in table()["number"].to_pylist()]
    expected = table().filter(pa.array(odd))
    texts = pa.array(["odd"] * len(expected))
    assert dataset.to_table().sort_by("id").equals(expected.set_column(2, "text", texts))


def test_a_store_that_is_not_read_in_place_reads_each_fragment_by_itself(
    tmp_path: Path, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = made(tmp_path / "t", table().select(["id"]))
    monkeypatch.setattr(type(dataset.snapshot.store), "reads_in_place", False)
    assert dataset.to_table()["id"].to_pylist() == list(range(ROWS))
    assert groups == []


def test_a_thread_that_ends_the_joining_does_not_disturb_a_read_of_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = made(tmp_path / "t").snapshot
    request = ScanRequest(snapshot.schema)
    joiner = BlockJoiner(snapshot, request)
    (group,) = joiner.group(plan_scan(snapshot, request).blocks, 1)
    looks = iter([joiner._columns])  # whoever looks again finds that they are gone
    monkeypatch.setattr(BlockJoiner, "_columns", property(lambda self: next(looks, None)), raising=False)
    read = joiner.read(group, lambda joined: [len(rows) for rows in joined.by_fragment()], Budget(1 << 30))
    assert read == [ROWS // FRAGMENTS] * FRAGMENTS


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("condition", [None, "n >= 0"])
def test_a_corrupt_file_fails_after_the_rows_before_it(
    tmp_path: Path, condition: str | None, indexed: bool, groups: list[int]
) -> None:
    dataset = lance_ops.write_dataset(pa.table({"n": range(40)}), tmp_path / "table", max_rows_per_file=10)
    if indexed:
        dataset.create_scalar_index("n", "BTREE")
        groups.clear()
    assert dataset.to_table(filter=condition).num_rows == 40
    assert groups == [4]
    third = dataset.snapshot.fragments[2].files[0].path
    size = (tmp_path / "table" / "data" / third).stat().st_size
    (tmp_path / "table" / "data" / third).write_bytes(b"x" * size)
    batches = lance_ops.dataset(tmp_path / "table").scanner(filter=condition, batch_size=10).to_batches()
    assert [next(batches).column("n").to_pylist() for _ in range(2)] == [[*range(10)], [*range(10, 20)]]
    with pytest.raises(CorruptFile, match=third):
        next(batches)


def test_a_row_that_cannot_be_tested_fails_after_the_rows_before_it(tmp_path: Path, groups: list[int]) -> None:
    values = [*range(1, 35), (1 << 63) - 1, *range(5)]
    dataset = lance_ops.write_dataset(pa.table({"n": values}), tmp_path / "table", max_rows_per_file=10)
    batches = dataset.scanner(filter="n + 1 > 0", batch_size=10).to_batches()
    assert [next(batches).num_rows for _ in range(3)] == [10, 10, 10]
    with pytest.raises(InvalidInput, match="overflow"):
        next(batches)
    assert groups == [4]


def test_what_cannot_be_joined_once_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = made(tmp_path / "t")
    monkeypatch.setattr(scan_execution, "available_cores", lambda: 1)
    monkeypatch.setattr(joined_blocks, "_MAX_JOINED", 2)
    tries: list[int] = []
    monkeypatch.setattr(FragmentReader, "whole_file", lambda self, _: tries.append(self.fragment.id))
    monkeypatch.setattr(joined_fragments, "open_alike", lambda *_: None)
    assert dataset.to_table().equals(table())
    assert tries == [0]


READS: dict[str, Callable[[lance_ops.LanceDataset], object]] = {
    "scan": lambda dataset: dataset.to_table(),
    "filter for few": lambda dataset: dataset.to_table(filter="id % 20 = 3"),
    "filter for many": lambda dataset: dataset.to_table(filter="id % 2 = 0"),
    "verified filter": lambda dataset: dataset.delete("id % 20 = 3"),
}


@pytest.mark.parametrize("read", READS)
def test_a_joint_read_asks_the_store_for_each_file_once(
    tmp_path: Path, read: str, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = made(tmp_path / "t").uri
    asked: list[str] = []
    view, read_parts = LocalStore.view, LocalStore.read_parts

    def watched(self: LocalStore, path: str) -> View:
        asked.append(path)
        return view(self, path)

    def watched_together(self: LocalStore, paths: Sequence[str], parts: Any, out: memoryview) -> list[int] | None:
        asked.extend(paths)
        return read_parts(self, paths, parts, out)

    monkeypatch.setattr(LocalStore, "view", watched)
    monkeypatch.setattr(LocalStore, "read_parts", watched_together)
    dataset = lance_ops.dataset(uri)
    assert READS[read](dataset)
    files = [f"data/{fragment.files[0].path}" for fragment in dataset.snapshot.fragments]
    assert [path for path in asked if path.startswith("data/")] == files
    assert groups == [FRAGMENTS]


def test_a_joint_read_counts_against_the_budget(
    tmp_path: Path, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = made(tmp_path / "t")
    spent: list[int] = []
    spend = Budget.spend

    def watched(self: Budget, num_bytes: int) -> None:
        spent.append(num_bytes)
        spend(self, num_bytes)

    monkeypatch.setattr(Budget, "spend", watched)
    found = dataset.to_table()
    assert sum(spent) >= sum(column.nbytes for column in found.select(["id", "text", "few", "vector"]).columns)
    assert groups == [FRAGMENTS]
    monkeypatch.setattr(scan_execution, "MAX_BLOCK_BYTES", 1000)
    monkeypatch.setattr(scan_execution, "HELD_BYTES", 1000)
    assert dataset.to_table().combine_chunks() == found.combine_chunks()

"""Counters of I/O: what a handle, a scan and the process read and write, against the sizes of the files."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.store.io_counters import IoCounters, IOStats, counted_in
from tests.forked import run_in_child

ROWS = 20_000
NOTHING = IOStats()


@pytest.fixture(params=["disk", "memory"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> lance_ops.LanceDataset:
    uri = str(tmp_path / "table") if request.param == "disk" else "memory://"
    texts = [f"row {number} {number * 0x9E3779B97F4A7C15:0200x}"[:120] for number in range(ROWS)]
    rows = pa.table({"id": range(ROWS), "text": texts, "more": texts})  # files that are too large to be read whole
    return lance_ops.write_dataset(rows, uri, max_rows_per_file=ROWS // 4)


def data_bytes(dataset: lance_ops.LanceDataset) -> int:
    return sum(file.file_size_bytes for fragment in dataset.snapshot.fragments for file in fragment.files)


def test_a_write_counts_every_byte_that_it_wrote(dataset: lance_ops.LanceDataset) -> None:
    stats = dataset.io_stats_snapshot()
    assert stats.write_iops >= 6  # four data files, the transaction, the manifest
    assert stats.written_bytes >= data_bytes(dataset)
    in_root = sum(dataset.all_files().read_all().column("size_bytes").to_pylist())
    assert stats.written_bytes <= 1.1 * in_root


def test_a_scan_counts_the_bytes_of_the_columns_it_reads(dataset: lance_ops.LanceDataset) -> None:
    fresh = lance_ops.dataset(dataset.uri)
    fresh.to_table()
    fresh.io_stats_incremental()
    fresh.to_table()
    whole = fresh.io_stats_incremental()
    fresh.to_table(columns=["id"])
    narrow = fresh.io_stats_incremental()
    fresh.take([5])
    one = fresh.io_stats_incremental()
    assert 0.5 * data_bytes(dataset) <= whole.read_bytes <= 1.2 * data_bytes(dataset)
    assert 0 < one.read_bytes < narrow.read_bytes < whole.read_bytes
    assert 0 < one.read_iops <= narrow.read_iops
    assert whole.write_iops == whole.written_bytes == 0
    assert fresh.io_stats_incremental() == NOTHING


def test_a_snapshot_of_the_counters_leaves_them_and_other_handles_have_their_own(
    dataset: lance_ops.LanceDataset,
) -> None:
    first, second = lance_ops.dataset(dataset.uri), lance_ops.dataset(dataset.uri)
    first.io_stats_incremental()
    before = second.io_stats_snapshot()
    first.checkout_version(1).to_table()
    read = first.io_stats_snapshot()
    assert read.read_bytes > 0 and first.io_stats_snapshot() == read
    assert second.io_stats_snapshot() == before
    assert pickle.loads(pickle.dumps(first)).io_stats_snapshot().read_bytes < read.read_bytes


def test_a_clone_counts_what_it_reads_of_its_source(dataset: lance_ops.LanceDataset, tmp_path: Path) -> None:
    clone = dataset.shallow_clone(str(tmp_path / "clone"), 1)
    clone.io_stats_incremental()
    clone.to_table()
    assert clone.io_stats_incremental().read_bytes >= 0.5 * data_bytes(dataset)


def test_the_process_counts_all_handles(dataset: lance_ops.LanceDataset) -> None:
    operations, num_bytes = lance_ops.iops_counter(), lance_ops.bytes_read_counter()
    fresh = lance_ops.dataset(dataset.uri)
    fresh.to_table()
    read = fresh.io_stats_snapshot()
    assert lance_ops.iops_counter() - operations == read.read_iops
    assert lance_ops.bytes_read_counter() - num_bytes == read.read_bytes


def test_threads_lose_no_count_and_a_block_counts_its_own() -> None:
    counters, block = IoCounters(), IoCounters()

    def count() -> None:
        for _ in range(5000):
            counters.add_reads(1, 10)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    with counted_in(block):
        counters.add_reads(2, 7)
        counters.add_write(3)
    for thread in threads:
        thread.join()
    assert counters.stats() == IOStats(20_002, 200_007, 1, 3)
    assert block.stats() == IOStats(2, 7, 1, 3)
    assert run_in_child(counters.take) == counters.stats()


@pytest.mark.parametrize("condition", [None, "id = 700", "text like 'row 9 %'"])
def test_a_scan_tells_its_callback_what_it_did(dataset: lance_ops.LanceDataset, condition: Any) -> None:
    dataset.create_scalar_index("id", "BTREE")
    fresh = lance_ops.dataset(dataset.uri)
    told: list[lance_ops.ScanStatistics] = []
    fresh.io_stats_incremental()
    found = fresh.scanner(filter=condition, scan_stats_callback=told.append).to_table()
    [stats] = told
    read = fresh.io_stats_incremental()
    assert (stats.iops, stats.bytes_read) == (read.read_iops, read.read_bytes) and stats.bytes_read > 0
    assert stats.indices_loaded == (condition == "id = 700")
    assert stats.all_counts["rows_returned"] == found.num_rows
    told.clear()
    scanner = fresh.scanner(filter=condition, scan_stats_callback=told.append)
    batches = scanner.to_batches()
    next(batches)
    assert len(told) == (condition is not None)  # only a scan without a filter has more than one batch to go on with
    list(batches)
    assert len(told) == 1 and told[0].indices_loaded == 0  # the index is open by now
    assert told[0].all_counts["rows_returned"] == found.num_rows


def test_an_error_of_a_callback_is_logged_and_not_raised(
    dataset: lance_ops.LanceDataset, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(stats: lance_ops.ScanStatistics) -> None:
        raise KeyError("mine")

    assert dataset.scanner(scan_stats_callback=fail).to_table().num_rows == ROWS
    assert "mine" in caplog.text


def test_a_plan_is_analysed_step_by_step(dataset: lance_ops.LanceDataset) -> None:
    dataset.create_scalar_index("id", "BTREE")
    plan = lance_ops.dataset(dataset.uri).scanner(filter="id < 100", order_by="text").analyze_plan()
    lines = {line.split(":")[0].strip(): line for line in plan.splitlines()}
    for step in ("AnalyzeExec", "SortExec", "LanceRead", "ScalarIndexQuery"):
        assert "elapsed=" in lines[step], plan
    assert "output_rows=100" in lines["LanceRead"] and "output_rows=100" in lines["ScalarIndexQuery"]
    for step in ("LanceRead", "ScalarIndexQuery"):
        assert (
            "bytes_read=" in lines[step]
            and "bytes_read=0" not in lines[step]
            and "iops=" in lines[step]
            and "requests=" in lines[step]
        )

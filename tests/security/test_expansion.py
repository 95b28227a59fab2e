"""A small table that claims very many rows takes little memory, and no verb works on such rows without an end."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceDataset
from lance_ops.core.threads import available_cores
from lance_ops.errors import CorruptFile, InvalidInput, ReadTooLarge
from lance_ops.file import Budget, SharedBytes
from lance_ops.reading import ScanRequest, scan, scan_block, scan_execution, scan_plan
from lance_ops.snapshot import check_rows_are_stored, expansion, limit_held_bytes
from tests.fuzz.bombs import BOMBS
from tests.security.expansion_survey import ALLOWED_BYTES, IDS, USES, one_file, rows_in_no_file
from tests.security.forging import with_files

NUM_NULLS = 100_000_000
_MOST_BLOCKS = 24  # of a scan that reads four blocks ahead: each may take three, and as much while it is decoded
_PIECE_BLOCKS = {"dictionary": 2 * 16}  # each of two threads copies the items of some chunks before they are counted

DONE = {
    "2^31 rows in no file": {"count", "stream", "head", "take", "compact", "validate", "statistics"},
    "2^27 rows in no file": {"stream", "read sorted", "delete"},
    "2^42 rows in no file": {"count", "stream"},
    "nulls of 1 GiB each": {"count"},
    "2^31 equal numbers": {"count", "stream"},
    "2^31 equal strings": {"stream", "take"},
    "2^25 equal numbers in 32 files": {"stream", "update", "compact"},
    "dictionaries of one long item": {"stream", "read matches", "read sorted", "update", "merge", "compact"},
}


def test_every_verb_ends_within_its_memory_on_a_table_that_claims_many_rows() -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.security.expansion_survey"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    expected = {
        f"{table}: {verb}": "done" if verb in DONE[table] else "ReadTooLarge"
        for table, verbs in USES.items()
        for verb in verbs
    }
    assert found["outcomes"] == expected, done.stderr
    assert {use: added for use, added in found["added_bytes"].items() if added >= ALLOWED_BYTES} == {}


def test_a_column_of_very_many_nulls_is_streamed_in_bounded_batches(dataset_uri: str) -> None:
    table = rows_in_no_file(dataset_uri, NUM_NULLS)
    before, rows = pa.total_allocated_bytes(), 0
    for batch in table.to_batches(batch_size=1 << 20):
        rows += batch.num_rows
        assert batch.num_rows <= 1 << 20 and batch.column(0).null_count == batch.num_rows
        assert pa.total_allocated_bytes() - before < _most_held()
    assert rows == table.count_rows() == NUM_NULLS


def _most_held() -> int:
    """Return what a scan may hold: the blocks read ahead, one more, and the caller's batch."""
    ahead = 2 * available_cores()
    return ahead * scan_execution.HELD_BYTES + 2 * scan_block.MAX_BLOCK_BYTES


def _wide(uri: str) -> LanceDataset:
    numbers = np.random.default_rng(3).integers(0, 1 << 60, 200_000)
    return lance_ops.write_dataset(pa.table({f"c{number}": numbers + number for number in range(40)}), uri)


def _lists(uri: str) -> LanceDataset:
    items = pa.array(np.random.default_rng(3).integers(0, 1 << 30, 20_000_000, np.int32))
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 20_000_001, 1000, dtype=np.int32)), items)
    return lance_ops.write_dataset(pa.table({"c": lists}), uri)


def _dictionary(uri: str) -> LanceDataset:
    return with_files(uri, pa.schema({"c": pa.string()}), [(BOMBS["one long item for every row"][0](), 1024 * 1000)])


SHAPES: dict[str, Callable[[str], LanceDataset]] = {
    "wide": _wide,
    "lists": _lists,
    "dictionary": _dictionary,
    "constant": lambda uri: one_file(uri, pa.array(["x" * 50] * 10), 2_000_000),
    "nulls": lambda uri: rows_in_no_file(uri, 10_000_000),
}


@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_scan_holds_no_more_than_its_budget_whatever_the_columns_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    table = SHAPES[shape](str(tmp_path / "table"))
    block = 1 << 20
    most_bytes = (_MOST_BLOCKS + _PIECE_BLOCKS.get(shape, 0)) * block
    for room in (scan_plan, scan_execution):
        monkeypatch.setattr(room, "BLOCK_BYTES", block)
    monkeypatch.setattr(scan_execution, "HELD_BYTES", 3 * block)
    monkeypatch.setattr(scan_execution, "MAX_BLOCK_BYTES", 4 * block)
    monkeypatch.setattr(scan_block, "_MAX_PART_BYTES", 2 * block)
    monkeypatch.setattr(scan_execution, "available_cores", lambda: 2)
    read_bytes, rows = 0, 0
    before = pa.total_allocated_bytes()
    tracemalloc.start()  # counts the arrays of numpy, which are not in Arrow's pool
    try:
        for part in scan(table.snapshot, ScanRequest(table.snapshot.schema)):
            read_bytes += part.nbytes
            rows += part.num_rows
            assert pa.total_allocated_bytes() - before < most_bytes
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == table.count_rows()
    assert peak < most_bytes < read_bytes / 2


def test_bytes_that_threads_share_are_taken_up_to_the_limit_and_given_back() -> None:
    shared = SharedBytes(100)
    first, second = Budget(0, 80, shared), Budget(0, 80, shared)
    first.spend(70)
    with pytest.raises(ReadTooLarge, match="beside other reads"):
        second.spend(40)
    second.spend(30)
    with pytest.raises(ReadTooLarge, match="more than 80 bytes"):
        first.spend(11)
    first.release()
    second.spend(50)
    second.release()
    assert shared.take(100) and not shared.take(1)


def test_the_caller_may_say_that_a_table_is_trusted(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows_in_no_file(dataset_uri, 20_000_000)
    with pytest.raises(ReadTooLarge, match="allow_expansion"):
        table.to_table()
    trusted = lance_ops.dataset(dataset_uri, storage_options={"allow_expansion": "true"})
    assert trusted.to_table(columns=["id"]).num_rows == 20_000_000
    monkeypatch.setenv("LANCE_OPS_ALLOW_EXPANSION", "1")
    assert table.to_table(columns=["id"]).num_rows == 20_000_000
    with pytest.raises(InvalidInput, match="allow_expansion is true or false"):
        lance_ops.dataset(dataset_uri, storage_options={"allow_expansion": "perhaps"}).to_table()


def test_an_answer_may_be_large_if_the_files_are_not_small_for_it(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "FREE_BYTES", 1000)
    monkeypatch.setattr(expansion, "FREE_ROWS", 10)
    rows = pa.table({"id": np.random.default_rng(1).integers(0, 1 << 60, 5000), "zero": [0] * 5000})
    table = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=1000)
    assert table.to_table() == rows
    assert table.to_table(filter="zero = 0", columns=["id"]) == rows.select(["id"])
    assert table.delete("id < 0") == {"num_deleted_rows": 0}


class _Measured:
    """Stands for a table of 1,000 rows, and counts how often its bytes are measured."""

    num_rows = 1000

    def __init__(self, *types: pa.DataType) -> None:
        self.schema = pa.schema([(str(number), each) for number, each in enumerate(types)])
        self.times = 0

    @property
    def nbytes(self) -> int:
        self.times += 1
        return 1000


@pytest.mark.parametrize(
    ("arrow_type", "num_bytes", "times"),
    [
        (pa.int64(), 8125, 0),
        (pa.struct({"vector": pa.list_(pa.float32(), 3), "flag": pa.bool_()}), 12_875, 0),
        (pa.list_(pa.string(), 3), 1000, 1),
    ],
)
def test_the_rows_of_an_answer_tell_its_bytes_unless_some_values_have_any_length(
    dataset_uri: str, arrow_type: pa.DataType, num_bytes: int, times: int
) -> None:
    snapshot = rows_in_no_file(dataset_uri, 1000).snapshot
    table: Any = _Measured(arrow_type)
    assert list(limit_held_bytes(snapshot, [table], [], num_bytes)) == [table]
    assert table.times == times
    with pytest.raises(ReadTooLarge, match=f"holding up to {num_bytes} bytes"):
        list(limit_held_bytes(snapshot, [table], [], num_bytes - 1))


def test_a_false_size_in_a_manifest_does_not_make_rows_credible(dataset_uri: str) -> None:
    table = one_file(dataset_uri, pa.array([7] * 10), 1 << 31)
    (fragment,) = table.snapshot.fragments

    def check(**changes: Any) -> None:
        changed = replace(fragment, files=(replace(fragment.files[0], **changes),))
        check_rows_are_stored(table.snapshot, 1 << 31, [changed])

    with pytest.raises(CorruptFile, match="but the manifest says"):
        check(file_size_bytes=1 << 40)
    with pytest.raises(CorruptFile, match="does not exist"):
        check(path="no.lance", file_size_bytes=1 << 40)
    with pytest.raises(ReadTooLarge, match="so few bytes"):
        check(file_size_bytes=0)
    table.snapshot.store.put("data/0.lance", bytes(1 << 21))
    check(file_size_bytes=1 << 21)
    check(file_size_bytes=0)


def test_fragments_without_files_are_compacted_and_read(dataset_uri: str) -> None:
    table = rows_in_no_file(dataset_uri, 3, 4, 5)
    assert table.optimize.compact_files().fragments_removed == 3
    assert lance_ops.dataset(dataset_uri).to_table() == pa.table(
        {"id": pa.nulls(12, pa.int64()), "s": pa.nulls(12, pa.string())}, IDS
    )

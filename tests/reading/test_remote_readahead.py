"""Many small blocks of a remote store are waited for at once, and few large ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.threads import available_cores
from lance_ops.reading import scan_execution, scan_plan
from lance_ops.snapshot import snapshot
from lance_ops.store import Buffers, ByteRange, MemoryStore

_FRAGMENTS, _ROWS = 12, 100
_VERBS: dict[str, Callable[[lance_ops.LanceDataset], object]] = {
    "delete": lambda dataset: dataset.delete("n % 10 = 3"),
    "update": lambda dataset: dataset.update({"n": "-1"}, where="n % 10 = 3"),
    "merge": lambda dataset: dataset.merge_insert("n").when_not_matched_insert_all().execute(pa.table({"n": [-5]})),
    "compact": lambda dataset: dataset.optimize.compact_files(),
    "add a column": lambda dataset: dataset.add_columns({"m": "n + 1"}),  # a task for each fragment
}


@pytest.fixture
def dataset(monkeypatch: pytest.MonkeyPatch) -> lance_ops.LanceDataset:
    """A table in many fragments, whose store hands nothing out in place."""
    rows = pa.table({"n": range(_FRAGMENTS * _ROWS)})
    dataset = lance_ops.write_dataset(rows, "memory://", max_rows_per_file=_ROWS)
    monkeypatch.setattr(MemoryStore, "reads_in_place", False)
    return dataset


def _watch(monkeypatch: pytest.MonkeyPatch, began: Callable[[str], None], ended: Callable[[], None]) -> None:
    get_ranges = MemoryStore.get_ranges

    def watched(self: MemoryStore, path: str, ranges: Sequence[ByteRange]) -> Buffers:
        began(path)
        try:
            return get_ranges(self, path, ranges)
        finally:
            ended()

    monkeypatch.setattr(MemoryStore, "get_ranges", watched)


@pytest.mark.parametrize("verb", _VERBS)
def test_a_verb_waits_for_eight_small_fragments_at_once(
    verb: str, dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, seen, lock = threading.Barrier(8, timeout=120), set[str](), threading.Lock()

    def began(path: str) -> None:
        with lock:
            is_one_of_the_first = path not in seen and len(seen) < 8
            seen.add(path)
        if is_one_of_the_first:
            together.wait()  # raises if fewer than eight reads wait at once

    _watch(monkeypatch, began, lambda: None)
    _VERBS[verb](dataset)
    assert len(seen) == _FRAGMENTS


_FRESH_READS: dict[str, Callable[[lance_ops.LanceDataset], pa.Table]] = {
    "range by index": lambda dataset: dataset.to_table(filter=f"n >= 5 AND n < {_FRAGMENTS * _ROWS}"),
    "take": lambda dataset: dataset.take(list(range(7, _FRAGMENTS * (_ROWS - 10), _ROWS - 10))),
    "take of addresses": lambda dataset: dataset._take_rows([number << 32 | 7 for number in range(_FRAGMENTS)]),
}


@pytest.mark.parametrize("verb", _FRESH_READS)
def test_a_read_of_chosen_rows_waits_for_eight_deletion_files_at_once(
    verb: str, dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.create_scalar_index("n", "BTREE")
    dataset.delete("n % 10 = 3")
    together, seen, lock = threading.Barrier(8, timeout=120), list[str](), threading.Lock()
    get = MemoryStore.get

    def watched(self: MemoryStore, path: str) -> pa.Buffer:
        if path.startswith("_deletions/"):
            with lock:
                seen.append(path)
                is_one_of_the_first = len(seen) <= 8
            if is_one_of_the_first:
                together.wait()  # raises if fewer than eight reads wait at once
        return get(self, path)

    monkeypatch.setattr(MemoryStore, "get", watched)
    found = _FRESH_READS[verb](lance_ops.dataset(dataset.uri))
    assert found.num_rows and not any(number % 10 == 3 for number in found["n"].to_pylist())
    assert len(seen) == len(set(seen)) == _FRAGMENTS


def test_a_task_holds_no_more_than_two_large_blocks(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (scan_plan, scan_execution):
        monkeypatch.setattr(module, "BLOCK_BYTES", 256)
    reading, most, lock = [0], [0], threading.Lock()

    def began(path: str) -> None:
        with lock:
            reading[0] += 1
            most[0] = max(most[0], reading[0])

    def ended() -> None:
        with lock:
            reading[0] -= 1

    _watch(monkeypatch, began, ended)
    assert dataset.delete("n % 10 = 3")
    assert 1 <= most[0] <= 2


def test_large_fragments_of_a_remote_store_have_a_task_for_each_core(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dataset.snapshot.tasks_at_once >= 16
    monkeypatch.setattr(snapshot, "_TASKS_BYTES", 1000)
    assert dataset.snapshot.tasks_at_once == available_cores()

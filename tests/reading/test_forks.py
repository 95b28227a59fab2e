"""A forked child goes on with the iterators, readers and handles of its parent, and never hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.reading import scan_execution, scan_plan
from tests.forked import run_in_child

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the tests fork while threads run

ROWS = 6000

Batches = Iterator[pa.RecordBatch]


def _reader(dataset: lance_ops.LanceDataset) -> Batches:
    return iter(dataset.scanner(batch_size=100).to_reader())


def _stream(dataset: lance_ops.LanceDataset) -> Batches:
    return iter(pa.RecordBatchReader.from_stream(dataset))


def _strict(dataset: lance_ops.LanceDataset) -> Batches:
    return dataset.scanner(batch_size=150, strict_batch_size=True).to_batches()


ITERATORS: dict[str, Callable[[lance_ops.LanceDataset], Batches]] = {
    "to_batches": lambda dataset: dataset.to_batches(batch_size=100),
    "filter": lambda dataset: dataset.to_batches(filter="text >= 't'", batch_size=100),
    "index": lambda dataset: dataset.to_batches(filter="id >= 0", batch_size=100),
    "limit": lambda dataset: dataset.to_batches(limit=4000, offset=10, batch_size=100),
    "order": lambda dataset: dataset.scanner(order_by="text", batch_size=100).to_batches(),
    "strict": _strict,
    "fragment": lambda dataset: dataset.get_fragments()[0].to_batches(batch_size=100),
    "reader": _reader,
    "stream": _stream,
    "files": lambda dataset: iter(dataset.tracked_files()),
}


@pytest.fixture(scope="module", params=["disk", "memory"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> lance_ops.LanceDataset:
    uri = str(tmp_path_factory.mktemp("table") / "table") if request.param == "disk" else "memory://"
    rows = pa.table({"id": range(ROWS), "text": [f"t{number * 7919 % ROWS}" for number in range(ROWS)]})
    made = lance_ops.write_dataset(rows, uri, max_rows_per_file=1000)
    made.create_scalar_index("id", "BTREE")
    made.delete("id % 5 = 0")
    return made


@pytest.fixture(autouse=True)
def several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a small table be read in many blocks by several threads."""
    monkeypatch.setattr(scan_execution, "available_cores", lambda: 3)
    monkeypatch.setattr(scan_plan, "BLOCK_BYTES", 8 << 10)


@pytest.mark.parametrize("taken", [0, 1, 3])
@pytest.mark.parametrize("name", ITERATORS)
def test_an_iterator_made_in_the_parent_goes_on_in_the_child_and_in_the_parent(
    dataset: lance_ops.LanceDataset, name: str, taken: int
) -> None:
    whole = list(ITERATORS[name](dataset))
    assert len(whole) >= 3
    batches = ITERATORS[name](dataset)
    first = [next(batches) for _ in range(taken)]
    assert run_in_child(lambda: list(batches)) == whole[taken:]
    assert first + list(batches) == whole


def test_a_child_that_was_forked_while_threads_read_reads_and_commits(
    dataset: lance_ops.LanceDataset, tmp_path: Path
) -> None:
    """A lock, a pool or an I/O context that some thread of the parent holds must not stop the child."""
    stop = threading.Event()
    other = lance_ops.write_dataset(pa.table({"id": range(10)}), str(tmp_path / "other"))

    def read() -> None:
        while not stop.is_set():
            fresh = lance_ops.dataset(other.uri)
            fresh.insert(pa.table({"id": [1]}))
            assert dataset.to_table(filter="id > 7").num_rows and fresh.take([0]).num_rows

    def work() -> tuple[int, int, int]:
        fresh = lance_ops.dataset(other.uri)
        mine = lance_ops.write_dataset(pa.table({"id": range(5)}), f"{other.uri}-child", mode="overwrite")
        mine.delete("id = 1")
        rows = dataset.to_table(filter="id > 7").num_rows
        return rows, mine.optimize.compact_files().fragments_added, fresh.count_rows("id >= 0")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(4):
            rows, compacted, others = run_in_child(work)
            assert rows == dataset.count_rows("id > 7") and compacted == 1 and others >= 10
    finally:
        stop.set()
        for reader in readers:
            reader.join()

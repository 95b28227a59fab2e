"""Pages of a large read are decoded in several threads, with the same result as in one thread."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.errors import CorruptFile
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, FileWriter
from lance_ops.file.page_reading import FileSource, Ranges, SourceBytes, Steps, combine_steps, run_all
from lance_ops.store import LocalStore, MemoryStore

LARGE = 3 << 20


@pytest.fixture
def source() -> FileSource:
    store = MemoryStore()
    store.put("file", bytes(LARGE))
    return FileSource(store, "file")


def _meeting(barrier: threading.Barrier, num_bytes: int) -> Steps[int]:
    """Ask for bytes, and continue when another thread has reached the barrier."""
    yield Ranges.of((0, num_bytes))
    barrier.wait()
    yield Ranges.of((0, 1))
    return threading.get_ident()


def test_many_bytes_are_decoded_in_several_threads(source: FileSource) -> None:
    barrier = threading.Barrier(2, timeout=120)
    run_all(source, [_meeting(barrier, LARGE), _meeting(barrier, LARGE)], threads=2)


@pytest.mark.parametrize(("num_bytes", "threads"), [(LARGE, 1), (1000, 2)])
def test_one_thread_or_few_bytes_start_no_other_thread(source: FileSource, num_bytes: int, threads: int) -> None:
    alone = threading.Barrier(1)
    found = run_all(source, [_meeting(alone, num_bytes) for _ in range(3)], threads)
    assert set(found) == {threading.get_ident()}


def _failing(number: int) -> Steps[int]:
    yield Ranges.of((0, LARGE))
    raise CorruptFile("file", f"column {number}", "broken")


def test_the_first_error_in_order_is_raised(source: FileSource) -> None:
    with pytest.raises(CorruptFile, match="column 0"):
        run_all(source, [_failing(number) for number in range(4)], threads=4)


@pytest.mark.parametrize("version", [FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2])
def test_four_threads_read_the_same_rows_as_one(tmp_path: object, version: FileVersion) -> None:
    rng = np.random.default_rng(9)
    rows = 60_000
    table = pa.table(
        {
            "int": rng.integers(0, 1 << 60, rows),
            "text": pa.array([f"value {number}" for number in rng.integers(0, 1 << 40, rows)]),
            "list": pa.array([[number] * (number % 5) for number in range(rows)], pa.list_(pa.int32())),
            "float": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.1),
            "struct": pa.StructArray.from_arrays(
                [pa.array(rng.integers(0, 9, rows)), pa.array(rng.random(rows))], ["x", "y"]
            ),
        }
    )
    store = LocalStore(str(tmp_path))
    with FileWriter(store, "file.lance", Schema.from_arrow(table.schema), version, page_bytes=100_000) as writer:
        for batch in table.to_batches(10_000):
            writer.write_batch(batch)
    reader = FileReader(store, "file.lance")
    assert reader.size_bytes > 2 << 20 and len(reader.column(0).pages) > 3

    assert reader.read(threads=4) == reader.read() == table
    assert pa.Table.from_batches(reader.iter_batches(threads=4)) == table


def test_the_ranges_of_a_single_task_pass_as_they_are() -> None:
    wanted = Ranges.of((3, 5), (4, 9))

    def reading() -> Steps[int]:
        return len((yield wanted).data)

    steps = combine_steps([reading()])
    assert next(steps) is wanted
    whole = np.zeros(9, np.uint8)
    with pytest.raises(StopIteration) as end:
        steps.send(SourceBytes(whole, np.zeros(1, np.int64), np.zeros(1, np.int64)))
    assert end.value.value == [9]

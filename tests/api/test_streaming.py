"""Streams longer than memory: the size of its pages limits a writer's memory, not the length of the stream."""

from __future__ import annotations

import gc
import itertools
import json
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileWriter
from lance_ops.store.contract import BytesLike, StoreWriter
from lance_ops.store.memory import MemoryStore

DIMENSION = 768
PAGE_BYTES = 128 * 1024  # so small that each column fills pages in either run
SOAK_BYTES = 20 * 10**9
MOST_BYTES = 10**9

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "tags": pa.list_(pa.string()),
        "score": pa.float64(),
        "embedding": pa.list_(pa.float32(), DIMENSION),
    }
)


def batch_of(first_id: int, num_rows: int, seed: int) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    ids = np.arange(first_id, first_id + num_rows)
    words = pa.array([f"word-{i}" for i in range(500)])
    ends = np.append(0, np.cumsum(rng.integers(0, 5, num_rows))).astype(np.int32)
    vectors = pa.array(rng.standard_normal(num_rows * DIMENSION, dtype=np.float32))
    columns = [
        pa.array(ids),
        pa.array([f"customer-{i * 7919 % 1_000_003}" for i in ids.tolist()]),
        pa.ListArray.from_arrays(pa.array(ends), words.take(pa.array(rng.integers(0, 500, int(ends[-1]))))),
        pa.array(rng.random(num_rows), mask=rng.random(num_rows) < 0.1),
        pa.FixedSizeListArray.from_arrays(vectors, DIMENSION),
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def stream(num_bytes: int, num_rows: int = 8192) -> Iterator[pa.RecordBatch]:
    """Yield the same few batches repeatedly, with new ids, until they have the given number of bytes."""
    made = [batch_of(0, num_rows, seed) for seed in range(4)]
    done = 0
    for number, batch in enumerate(itertools.cycle(made)):
        if done >= num_bytes:
            return
        ids = pa.array(np.arange(number * num_rows, (number + 1) * num_rows))
        yield batch.set_column(0, "id", ids)
        done += batch.nbytes


class Nowhere(MemoryStore):
    """A file that discards its bytes and records the most bytes that Arrow held at any write."""

    def __init__(self) -> None:
        super().__init__()
        self.arrow_bytes = 0

    def open_writer(self, path: str, *, durable: bool = True) -> StoreWriter:
        return _NowhereWriter(self)


class _NowhereWriter(StoreWriter):
    def __init__(self, store: Nowhere) -> None:
        self._store = store
        self.num_bytes = 0

    def write(self, data: BytesLike) -> None:
        self.num_bytes += memoryview(data).nbytes
        self._store.arrow_bytes = max(self._store.arrow_bytes, pa.total_allocated_bytes())

    def tell(self) -> int:
        return self.num_bytes

    def close(self) -> None: ...

    def abort(self) -> None: ...


def small_batch_of(seed: int) -> pa.RecordBatch:
    batch = batch_of(0, 2048, seed)
    start = batch["embedding"].flatten()[: 2048 * 8]
    return batch.set_column(4, "embedding", pa.FixedSizeListArray.from_arrays(start, 8))


def peak_bytes(num_batches: int, version: FileVersion) -> int:
    """Return the peak of bytes held by numpy, Python and Arrow, less the bytes held at the start."""
    made = [small_batch_of(seed) for seed in range(2)]
    schema = made[0].schema
    store = Nowhere()
    gc.collect()  # what other tests left must not be freed meanwhile
    with FileWriter(store, "f", Schema.from_arrow(schema), version, page_bytes=PAGE_BYTES) as writer:
        tracemalloc.start()
        arrow_before = pa.total_allocated_bytes()
        for number in range(num_batches):
            # in memory of its own, as each batch of a stream is
            writer.write_batch(pa.record_batch([pa.concat_arrays([c, c[:0]]) for c in made[number % 2]], schema=schema))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert writer.num_rows == num_batches * made[0].num_rows
    return int(peak + store.arrow_bytes - arrow_before)


@pytest.mark.parametrize("version", [FileVersion.V2_1, FileVersion.V2_2])
def test_a_writer_s_memory_does_not_grow_with_the_stream(version: FileVersion) -> None:
    peak_bytes(8, version)  # one-time allocations
    few, many = peak_bytes(30, version), peak_bytes(120, version)
    assert many < 1.3 * few
    batch = small_batch_of(0)
    assert many < 4 * (batch.nbytes + batch.num_columns * PAGE_BYTES) < 120 * batch.nbytes / 4


@pytest.mark.soak
def test_twenty_gigabytes_are_streamed_in_less_than_one_of_memory(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < 1.5 * SOAK_BYTES:
        pytest.skip("needs 30 GB of free disk")
    uri = tmp_path / "long"
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "tests.api.test_streaming", str(uri)], capture_output=True, text=True, check=True
        )
        measured = json.loads(ran.stdout)
        print(measured)
        assert measured["bytes"] >= SOAK_BYTES
        assert measured["peak_bytes"] < MOST_BYTES
        dataset = lance_ops.dataset(str(uri))
        assert dataset.count_rows() == measured["rows"]
        rows = [0, 8191, 8192, measured["rows"] // 2, measured["rows"] - 1]
        taken = dataset.take(rows)
        assert taken["id"].to_pylist() == rows
        for place, row in enumerate(rows):
            expected = batch_of(0, 8192, row // 8192 % 4).slice(row % 8192, 1).drop_columns(["id"])
            assert taken.slice(place, 1).drop_columns(["id"]).to_pylist() == expected.to_pylist()
    finally:
        shutil.rmtree(uri, ignore_errors=True)


def main(uri: str, num_bytes: int) -> None:
    """Write the stream in a separate process and print the memory it took."""
    import resource

    done = {"bytes": 0, "rows": 0}

    def counted() -> Iterator[pa.RecordBatch]:
        for batch in stream(num_bytes):
            done["bytes"] += batch.nbytes
            done["rows"] += batch.num_rows
            yield batch

    lance_ops.write_dataset(pa.RecordBatchReader.from_batches(SCHEMA, counted()), uri)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_seconds = usage.ru_utime + usage.ru_stime
    print(json.dumps(done | {"peak_bytes": usage.ru_maxrss * 1024, "cpu_seconds": round(cpu_seconds, 1)}))


if __name__ == "__main__":
    main(sys.argv[1], int(float(sys.argv[2])) if len(sys.argv) > 2 else SOAK_BYTES)

"""Decoded values are allocated from Arrow's memory pool."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, FileWriter
from lance_ops.store import MemoryStore

NUM_ROWS = 200_000


def packed(rng: np.random.Generator) -> pa.Array:
    return pa.array(rng.integers(0, 100, NUM_ROWS))


def runs(rng: np.random.Generator) -> pa.Array:
    return pa.array(np.repeat(rng.integers(0, 1 << 40, NUM_ROWS // 100), 100))


def random(rng: np.random.Generator) -> pa.Array:
    return pa.array(rng.integers(-(1 << 62), 1 << 62, NUM_ROWS))


def words(rng: np.random.Generator) -> pa.Array:
    return pa.array(["one", "two", "three"]).take(pa.array(rng.integers(0, 3, NUM_ROWS)))


def unique_texts(rng: np.random.Generator) -> pa.Array:
    return pa.array(rng.integers(0, 1 << 40, NUM_ROWS)).cast(pa.string())


def lists(rng: np.random.Generator) -> pa.Array:
    offsets = np.arange(0, NUM_ROWS + 1, 2, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), packed(rng))


@pytest.mark.parametrize(
    ("generate", "encoding"),
    [
        (packed, "inline_bitpacking"),
        (runs, "rle"),
        (random, "flat"),
        (words, "dictionary"),
        (unique_texts, "fsst"),
        (lists, "inline_bitpacking"),
    ],
)
def test_arrow_counts_the_memory_of_decoded_values(
    generate: Callable[[np.random.Generator], pa.Array], encoding: str
) -> None:
    column = generate(np.random.default_rng(4))
    table = pa.table({"values": column})
    store = MemoryStore()
    with FileWriter(store, "file.lance", Schema.from_arrow(table.schema), FileVersion.V2_1) as writer:
        writer.write_batch(table)
    reader = FileReader(store, "file.lance")
    assert encoding in reader.describe()[0][0]
    gc.collect()  # what other tests left must not be freed during the read
    before = pa.total_allocated_bytes()
    found = reader.read()
    assert pa.total_allocated_bytes() - before >= 0.9 * table.nbytes
    assert found.equals(table)

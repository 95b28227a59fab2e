"""Decoded values lie in the memory pool that Arrow's own results come from."""

from __future__ import annotations

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
    ("generate", "met"),
    [
        (packed, "inline_bitpacking"),
        (runs, "rle"),
        (random, "flat"),
        (words, "dictionary"),
        (unique_texts, "fsst"),
        (lists, "inline_bitpacking"),
    ],
)
def test_what_a_read_decodes_is_counted_by_arrow(generate: Callable[[np.random.Generator], pa.Array], met: str) -> None:
    column = generate(np.random.default_rng(4))
    table = pa.table({"values": column})
    store = MemoryStore()
    with FileWriter(store, "file.lance", Schema.from_arrow(table.schema), FileVersion.V2_1) as writer:
        writer.write_batch(table)
    reader = FileReader(store, "file.lance")
    assert met in reader.describe()[0][0]
    before = pa.total_allocated_bytes()
    found = reader.read()
    assert pa.total_allocated_bytes() - before >= 0.9 * table.nbytes
    assert found.equals(table)

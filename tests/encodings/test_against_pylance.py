"""Every encoding is read from the reference's files, and written to files that the reference reads.

The table says which encodings each column must use, so a changed choice of either writer fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.compressive.registry import ALL_ENCODINGS
from lance_ops.file.reader import FileReader
from lance_ops.file.writer import FileWriter
from lance_ops.store import LocalStore

pytestmark = pytest.mark.interop

N = 3000
RANDOM = np.random.default_rng(3)
SEED = RANDOM.bit_generator.state
WORDS = [RANDOM.bytes(4).hex() for _ in range(500)]


def option(**options: str) -> dict[str, str]:
    return {f"lance-encoding:{key.replace('_', '-')}": value for key, value in options.items()}


def structs(**children: Any) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(child) for child in children.values()], list(children))


def lists(items: pa.Array, size: int) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(items, size)


def some_null(array: pa.Array, share: float = 0.2) -> pa.Array:
    return pa.array(array.to_pylist(), array.type, mask=RANDOM.random(len(array)) < share)


@dataclass(frozen=True)
class Column:
    """A column, and the encodings that the reference (`theirs`) and we (`ours`) must use for it."""

    make: Callable[[], pa.Array]
    theirs: set[str]
    ours: set[str]
    metadata: Mapping[str, str] = field(default_factory=dict)
    version: str = "2.2"


def floats() -> pa.Array:
    return pa.array(np.cumsum(RANDOM.random(N)))


def sentences(words: int = 6, count: int = N) -> list[str]:
    return [" ".join(WORDS[i] for i in RANDOM.integers(0, 500, words)) for _ in range(count)]


COLUMNS = {
    "random integers": Column(lambda: pa.array(RANDOM.integers(-(1 << 62), 1 << 62, N)), {"flat"}, {"flat"}),
    "booleans": Column(lambda: some_null(pa.array(RANDOM.random(N) < 0.5)), {"flat"}, {"flat"}),
    "small integers": Column(
        lambda: some_null(pa.array(RANDOM.integers(0, 99, N), pa.int16())),
        {"inline_bitpacking", "def:out_of_line_bitpacking"},
        {"inline_bitpacking", "def:out_of_line_bitpacking"},
    ),
    "few nulls": Column(
        lambda: some_null(pa.array(RANDOM.integers(0, 99, N), pa.uint32()), 0.002), {"def:rle"}, {"def:rle"}
    ),
    "few nulls in 2.1": Column(
        lambda: some_null(pa.array(RANDOM.integers(0, 99, N), pa.uint32()), 0.002),
        {"def:out_of_line_bitpacking"},
        {"def:out_of_line_bitpacking"},
        version="2.1",
    ),
    "few values, some null": Column(
        lambda: some_null(pa.array(RANDOM.integers(0, 1 << 31, 700))),
        {"def:inline_bitpacking"},
        {"def:out_of_line_bitpacking"},
    ),
    "runs": Column(lambda: pa.array(np.repeat(RANDOM.integers(0, 1 << 30, N // 30), 30), pa.int32()), {"rle"}, {"rle"}),
    "strings": Column(lambda: pa.array(WORDS[:90]), {"variable"}, {"variable"}),
    "large strings": Column(lambda: some_null(pa.array(WORDS, pa.large_string())), {"variable"}, {"variable"}),
    "sentences": Column(lambda: pa.array(sentences()), {"fsst", "variable"}, {"fsst", "variable"}),
    "large sentences": Column(lambda: some_null(pa.array(sentences(), pa.large_string())), {"fsst"}, {"fsst"}),
    "long sentences": Column(lambda: pa.array(sentences(99, 300)), {"full_zip", "fsst"}, {"full_zip", "fsst"}),
    "documents": Column(
        lambda: pa.array(["lorem ipsum " * 4000 + str(i) for i in range(4)]),
        {"full_zip", "general"},
        {"full_zip", "general"},
    ),
    "noise": Column(lambda: pa.array([RANDOM.bytes(700) for _ in range(50)]), {"full_zip"}, {"full_zip", "variable"}),
    "colours": Column(
        lambda: some_null(pa.array([WORDS[i % 7] for i in range(N)])),
        {"dictionary", "inline_bitpacking", "dictionary:general", "dictionary:variable"},
        {"dictionary", "inline_bitpacking", "dictionary:variable"},
    ),
    "colours in 2.1": Column(
        lambda: pa.array([WORDS[i % 7] for i in range(N)]),
        {"dictionary", "dictionary:variable"},
        {"dictionary", "dictionary:variable"},
        version="2.1",
    ),
    "few large integers": Column(lambda: pa.array(RANDOM.integers(0, 40, N) << 50), {"dictionary"}, {"dictionary"}),
    "few decimals": Column(
        lambda: pa.array(RANDOM.integers(0, 40, N)).cast(pa.decimal128(25)), {"dictionary"}, {"dictionary"}
    ),
    "zstd strings": Column(
        lambda: pa.array(sentences()), {"general", "variable"}, {"general", "variable"}, option(compression="zstd")
    ),
    "lz4 strings": Column(
        lambda: pa.array(["some words " * 9 + str(i) for i in range(N)]),
        {"general"},
        {"general"},
        option(compression="lz4"),
    ),
    "zstd long strings": Column(
        lambda: pa.array(sentences(99, 300)),
        {"full_zip", "general"},
        {"full_zip", "general"},
        option(compression="zstd"),
    ),
    "split floats": Column(
        floats,
        {"general", "byte_stream_split"},
        {"general", "byte_stream_split"},
        option(compression="zstd", compression_level="3", bss="on"),
    ),
    "lz4 integers": Column(
        lambda: pa.array(np.arange(N) % 1000 * 1_000_003),
        {"general"},
        {"general"},
        option(compression="lz4"),
    ),
    "plain on request": Column(lambda: pa.array([1] * 10 + [2] * N), {"flat"}, {"flat"}, option(compression="none")),
    "small vectors": Column(
        lambda: lists(pa.array(RANDOM.random(4 * N), pa.float32()), 4), {"fixed_size_list"}, {"fixed_size_list", "flat"}
    ),
    "small vectors with null items": Column(
        lambda: lists(some_null(pa.array(RANDOM.random(3 * N), pa.float32())), 3),
        {"fixed_size_list"},
        {"fixed_size_list"},
    ),
    "vectors": Column(
        lambda: lists(pa.array(RANDOM.random(64 * 50), pa.float64()), 64), {"full_zip"}, {"full_zip", "fixed_size_list"}
    ),
    "vectors with null items": Column(
        lambda: lists(some_null(pa.array(RANDOM.random(64 * 50))), 64), {"full_zip"}, {"full_zip", "fixed_size_list"}
    ),
    "vectors of nulls": Column(
        lambda: lists(pa.nulls(64 * 50, pa.float32()), 64), {"fixed_size_list", "constant"}, {"fixed_size_list"}
    ),
    "matrices": Column(
        lambda: lists(lists(some_null(pa.array(RANDOM.random(6 * N), pa.float32())), 3), 2),
        {"fixed_size_list"},
        {"fixed_size_list"},
    ),
    "packed structs": Column(
        lambda: structs(a=np.arange(N), b=RANDOM.random(N)), {"packed_struct"}, {"packed_struct"}, option(packed="true")
    ),
    "packed structs with strings and vectors": Column(
        lambda: structs(a=np.arange(300), b=sentences(5, 300), c=lists(pa.array(RANDOM.random(600)), 2)),
        {"variable_packed_struct"},
        {"variable_packed_struct"},
        option(packed="true"),
    ),
}

every_column = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)


def table_of(column: Column) -> pa.Table:
    RANDOM.bit_generator.state = SEED  # the same values in any test order
    array = column.make()
    schema = pa.schema([pa.field("column", array.type, metadata=dict(column.metadata) or None)])
    return pa.Table.from_arrays([array], schema=schema)


def met_in(reader: FileReader) -> set[str]:
    return {encoding for column in reader.describe() for page in column for encoding in page}


@every_column
def test_files_that_pylance_writes_are_read(column: Column, tmp_path: Path) -> None:
    from lance.file import LanceFileWriter

    table = table_of(column)
    with LanceFileWriter(str(tmp_path / "theirs.lance"), table.schema, version=column.version) as writer:
        writer.write_batch(table)
    reader = FileReader(LocalStore(str(tmp_path)), "theirs.lance")
    assert met_in(reader) >= column.theirs
    assert reader.read().column(0).combine_chunks().equals(table.column(0).combine_chunks())


@every_column
def test_files_that_we_write_are_read_by_both(column: Column, tmp_path: Path) -> None:
    from lance.file import LanceFileReader

    table = table_of(column)
    store = LocalStore(str(tmp_path))
    writer = FileWriter(store, "ours.lance", Schema.from_arrow(table.schema), FileVersion.parse(column.version))
    writer.write_batch(table)
    writer.finish()
    reader = FileReader(store, "ours.lance")
    assert met_in(reader) >= column.ours
    theirs = LanceFileReader(str(tmp_path / "ours.lance"))
    for read in (reader.read(), theirs.read_all().to_table()):
        assert read.column(0).combine_chunks().equals(table.column(0).combine_chunks())
    rows = sorted(RANDOM.choice(len(table), min(20, len(table)), replace=False).tolist())
    assert theirs.take_rows(rows).to_table().column(0).to_pylist() == table.take(rows).column(0).to_pylist()


def test_the_table_covers_every_encoding_in_both_directions() -> None:
    every = {encoding.MESSAGE for encoding in ALL_ENCODINGS}
    assert every - met_by(column.theirs for column in COLUMNS.values()) == set()
    # the reference uses it only for items that are all null, which we write like other items
    assert every - met_by(column.ours for column in COLUMNS.values()) == {"constant"}


def met_by(encodings: Any) -> set[str]:
    return {name.split(":")[-1] for names in encodings for name in names}

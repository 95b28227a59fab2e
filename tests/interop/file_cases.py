"""Columns that make the reference's writer use every layout and encoding, and the features their files must have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["CASES", "LEGACY_CASES", "UNREAD_CASES", "Case"]

N = 3000
_RANDOM = np.random.default_rng(11)
_NULL = pa.array(_RANDOM.random(N) < 0.3)


@dataclass(frozen=True)
class Case:
    """A column, and per version some of the names that `describe` gives its pages."""

    name: str
    make: Callable[[], pa.Array]
    encodings: Mapping[str, set[str]] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    item_metadata: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> pa.Table:
        array = self.make()
        arrow_type = array.type
        if self.item_metadata:
            arrow_type = pa.list_(arrow_type.value_field.with_metadata(self.item_metadata))
            array = array.cast(arrow_type)
        return pa.table([array], schema=pa.schema([pa.field("c", arrow_type, metadata=self.metadata or None)]))


def _both(names: set[str]) -> dict[str, set[str]]:
    return {"2.1": names, "2.2": names}


def _all(flat: set[str], names: set[str]) -> dict[str, set[str]]:
    return {"2.0": flat, **_both(names)}


def _with_nulls(array: pa.Array) -> pa.Array:
    return pa.compute.if_else(_NULL, None, array)


def _vectors(width: int, rows: int = N, dtype: str = "float32") -> pa.Array:
    items = pa.array(np.random.default_rng(width).random(rows * width).astype(dtype))
    return pa.FixedSizeListArray.from_arrays(items, width)


def _ints() -> pa.Array:
    return pa.array(np.random.default_rng(1).integers(-(2**60), 2**60, N))


def _small() -> pa.Array:
    return pa.array(np.random.default_rng(2).integers(0, 1000, N).astype(np.int32))


def _strings() -> pa.Array:
    return pa.array([f"https://example.com/{i}/of/{i * i}" for i in range(N)])


def _long_strings() -> pa.Array:
    return pa.array([f"https://example.com/{i}/of/{i * i}" * 15 if i % 3 else None for i in range(300)])


def _random_bytes(size: int, rows: int, *, nulls: bool = False) -> pa.Array:
    generator = np.random.default_rng(size)
    return pa.array([None if nulls and i % 3 == 0 else generator.bytes(size) for i in range(rows)])


def _structs() -> pa.Array:
    return pa.StructArray.from_arrays([_small(), pa.array(np.arange(N) / 7)], ["x", "y"])


def _struct_with_strings() -> pa.Array:
    return pa.StructArray.from_arrays([_small(), _strings()], ["x", "s"])


_POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])
_PAIR = pa.list_(_POINT, 2)


def _point(i: int) -> dict[str, Any] | None:
    return {"x": i if i % 5 else None, "y": f"point {i}"} if i % 7 else None


def _pair(i: int) -> list[dict[str, Any] | None] | None:
    return [_point(i), _point(i + 1)] if i % 11 else None


BITPACKED, RLE, DICT = "inline_bitpacking", "rle", "dictionary"

CASES: tuple[Case, ...] = (
    Case("random integers", _ints, _all({"no_nulls", "flat"}, {"mini_block", "flat"})),
    Case(
        "nullable integers",
        lambda: _with_nulls(_ints()),
        _all({"some_nulls"}, {"mini_block", "flat", "def:out_of_line_bitpacking"}),
    ),
    Case("small integers", _small, _all({"flat"}, {BITPACKED})),
    Case(
        "bytes of two bits", lambda: pa.array(_RANDOM.integers(0, 4, N).astype(np.uint8)), _all({"flat"}, {BITPACKED})
    ),
    Case("half floats", lambda: pa.array(np.arange(N).astype(np.float16)), _all({"flat"}, {"mini_block"})),
    Case("booleans", lambda: pa.array(np.arange(N) % 3 == 0), _all({"flat"}, {"mini_block", "flat"})),
    Case("runs of bytes", lambda: pa.array(np.repeat(np.arange(N // 50), 50).astype(np.int8)), _all({"flat"}, {RLE})),
    Case(
        "runs of words",
        lambda: pa.array(np.repeat(np.arange(N // 50) * 10**15, 50)),
        {"2.0": {"flat"}, "2.1": {RLE}, "2.2": {DICT, RLE, "dictionary:general"}},
    ),
    Case("one value", lambda: pa.array([7] * N), {"2.0": {"flat"}, "2.1": {RLE}, "2.2": {"constant", "inline"}}),
    Case(
        "one value or null",
        lambda: pa.array([7, None] * N),
        {"2.0": {"some_nulls"}, "2.1": {BITPACKED}, "2.2": {"constant", "inline"}},
    ),
    Case(
        "one string or null",
        lambda: pa.array(["abc", None] * N),
        {"2.0": {DICT}, "2.1": {DICT}, "2.2": {"constant", "value"}},
    ),
    Case("all null", lambda: pa.nulls(N, pa.int32()), _all({"all_nulls"}, {"constant"})),
    Case("null type", lambda: pa.nulls(N), _all({"all_nulls"}, {"constant"})),
    Case("strings", _strings, _all({"binary"}, {"mini_block", "fsst", "variable"})),
    Case("large strings", lambda: _strings().cast(pa.large_string()), _all({"binary"}, {"fsst"})),
    Case("few strings", lambda: pa.array([["red", "green", None][i % 3] for i in range(N)]), _all({DICT}, {DICT})),
    Case(
        "few words",
        lambda: pa.array([[10**15, -5, None][i % 3] for i in range(N)]),
        {"2.0": {"some_nulls"}, "2.1": {"flat"}, "2.2": {DICT, "dictionary:general"}},
    ),
    Case("short binary", lambda: _random_bytes(20, N), _all({"binary"}, {"mini_block", "variable"})),
    Case("long strings", _long_strings, _all({"binary"}, {"full_zip", "fsst"})),
    Case("long binary", lambda: _random_bytes(400, 300, nulls=True), _all({"binary"}, {"full_zip", "variable"})),
    Case("very long binary", lambda: _random_bytes(50_000, 9, nulls=True), _all({"binary"}, {"full_zip", "general"})),
    Case(
        "wide values", lambda: _random_bytes(1000, 50, nulls=True).cast(pa.binary(1000)), _all({"flat"}, {"full_zip"})
    ),
    Case("decimals", lambda: _ints().cast(pa.decimal128(38, 2)), _all({"flat"}, {"mini_block", "flat"})),
    Case("wide decimals", lambda: _ints().cast(pa.decimal256(60, 2)), _all({"flat"}, {"mini_block", "flat"})),
    Case("narrow vectors", lambda: _vectors(3), _all({"fixed_size_list"}, {"mini_block", "fixed_size_list"})),
    Case("wide vectors", lambda: _vectors(100, 300), _all({"fixed_size_list"}, {"full_zip", "fixed_size_list"})),
    Case(
        "vectors with null items",
        lambda: pa.array([[1.5, None, -i] if i % 5 else None for i in range(N)], pa.list_(pa.float32(), 3)),
        _all({"fixed_size_list", "some_nulls"}, {"mini_block", "fixed_size_list"}),
    ),
    Case(
        "wide vectors with null items",
        lambda: pa.array([[1.5, None] * 40 if i % 5 else None for i in range(200)], pa.list_(pa.float32(), 80)),
        _all({"fixed_size_list", "some_nulls"}, {"full_zip", "fixed_size_list"}),
    ),
    Case(
        "vectors of nothing but null items",
        lambda: pa.array([[None, None]] * N, pa.list_(pa.int32(), 2)),
        _all({"fixed_size_list", "all_nulls"}, {"full_zip", "constant"}),
    ),
    Case(
        "vectors of vectors",
        lambda: pa.array([[[1, None], None, [i, 2]] for i in range(90)] + [None], pa.list_(pa.list_(pa.int16(), 2), 3)),
        _all({"fixed_size_list"}, {"mini_block", "fixed_size_list"}),
    ),
    Case(
        "vectors of booleans",
        lambda: pa.array([[True, None, i % 2 == 0] if i % 5 else None for i in range(N)], pa.list_(pa.bool_(), 3)),
        _all({"fixed_size_list"}, {"mini_block", "fixed_size_list"}),
    ),
    Case(
        "vectors of more booleans than fill bytes",
        lambda: pa.array([[i % 3 == 0] * 2998 + [True] for i in range(40)], pa.list_(pa.bool_(), 2999)),
        _all({"fixed_size_list"}, {"mini_block", "fixed_size_list"}),
    ),
    Case(
        "structs",
        lambda: pa.array([{"x": i, "y": str(i)} if i % 3 else None for i in range(N)]),
        _both({"mini_block", "def:out_of_line_bitpacking"}),
    ),
    Case(
        "structs without nulls",
        lambda: pa.array([{"x": i, "y": str(i)} for i in range(N)]),
        {"2.0": {"struct", "binary"}},
    ),
    Case(
        "lists",
        lambda: pa.array([[i, None] * (i % 4) if i % 3 else None for i in range(N)]),
        _all({"list"}, {"mini_block"}),
    ),
    Case(
        "lists without nulls",
        lambda: pa.array([[float(i)] * (i % 4 + 1) for i in range(N)]),
        _all({"list"}, {"mini_block", "rep:out_of_line_bitpacking"}),
    ),
    Case(
        "lists of lists",
        lambda: pa.array([[[i, None], [], None, [4]] * (i % 4) if i % 3 else None for i in range(N)]),
        _all({"list"}, {"mini_block"}),
    ),
    Case(
        "lists of structs of lists",
        lambda: pa.array([[{"a": [{"b": [i, None]}], "c": i}, None] * (i % 3) if i % 4 else None for i in range(N)]),
        _both({"mini_block"}),
    ),
    Case(
        "long lists",
        lambda: pa.array([list(range(20_000)) if i == 3 else [] for i in range(10)]),
        {"2.0": {"list"}, "2.1": {"mini_block"}, "2.2": {"mini_block", "rep:rle", "def:rle"}},
    ),
    Case(
        "lists of long strings",
        lambda: pa.ListArray.from_arrays(pa.array([None, *range(1, 300)]), _random_bytes(300, 299, nulls=True)),
        _all({"list"}, {"full_zip"}),
    ),
    Case(
        "lists of wide vectors",
        lambda: pa.array(
            [[[float(i)] * 80, None] * (i % 3) if i % 4 else None for i in range(150)],
            pa.list_(pa.list_(pa.float32(), 80)),
        ),
        _all({"list"}, {"full_zip", "fixed_size_list"}),
    ),
    Case("empty lists", lambda: pa.array([[], None] * N, pa.list_(pa.int8())), _all({"list"}, {"constant"})),
    Case(
        "few items among many empty lists",
        lambda: pa.array([[]] * 70_000 + [[1, 2]] + [None] * 70_000 + [[3]], pa.list_(pa.int32())),
        _all({"list"}, {"constant", "mini_block"}),
    ),
    Case(
        "large lists",
        lambda: pa.array([[i] * (i % 4) for i in range(N)], pa.large_list(pa.int16())),
        _all({"list"}, {"mini_block"}),
    ),
    Case(
        "maps",
        lambda: pa.array(
            [[("a", i), ("b", None)] if i % 3 else None for i in range(N)], pa.map_(pa.string(), pa.int32())
        ),
        {"2.2": {"mini_block"}},
    ),
    Case(
        "dictionaries",
        lambda: pa.array(["a", "bc", None] * N).dictionary_encode(),
        {"2.0": {DICT}, "2.1": {DICT}, "2.2": {DICT, "dictionary:general"}},
    ),
    Case(
        "dictionaries with narrow keys",
        lambda: pa.array(["a", "bc", None] * N).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
        _all({DICT}, {DICT}),
    ),
    Case("dictionaries of numbers", lambda: pa.array([10**12, 5, None] * N).dictionary_encode(), _all({DICT}, {DICT})),
    Case("structs without fields", lambda: pa.array([{}] * N, pa.struct([])), _all({"struct"}, {"constant"})),
    Case(
        "structs that end without fields",
        lambda: pa.array([{"x": i, "e": {}, "s": {"e": {}}} for i in range(N)]),
        _all({"struct"}, {"mini_block", "constant"}),
    ),
    Case(
        "fixed-size lists of structs",
        lambda: pa.array([_pair(i) for i in range(N)], _PAIR),
        {"2.2": {"mini_block", "def:out_of_line_bitpacking"}},
    ),
    Case(
        "fixed-size lists of structs of more of them",
        lambda: pa.array(
            [[{"a": _pair(i), "b": [i, None]}, None] if i % 9 else None for i in range(N // 3)],
            pa.list_(pa.struct([("a", _PAIR), ("b", pa.list_(pa.int32(), 2))]), 2),
        ),
        {"2.2": {"mini_block", "fixed_size_list"}},
    ),
    Case(
        "packed structs",
        _structs,
        _all({"packed_struct"}, {"mini_block", "packed_struct"}),
        {"lance-encoding:packed": "true"},
    ),
    Case(
        "packed structs with bytes",
        lambda: pa.StructArray.from_arrays(
            [_small().cast(pa.int16()), _small().cast(pa.uint8(), safe=False), pa.array([b"abc"] * N, pa.binary(3))],
            ["x", "y", "z"],
        ),
        _all({"packed_struct"}, {"mini_block", "packed_struct"}),
        {"lance-encoding:packed": "true"},
    ),
    Case(
        "packed structs with strings",
        _struct_with_strings,
        {"2.2": {"full_zip", "variable_packed_struct"}},
        {"lance-encoding:packed": "true"},
    ),
    Case(
        "packed structs in lists",
        lambda: pa.ListArray.from_arrays(pa.array(range(0, N + 1, 3)), _structs()),
        _all({"list", "packed_struct"}, {"mini_block", "packed_struct"}),
        item_metadata={"lance-encoding:packed": "true"},
    ),
    Case(
        "blobs",
        lambda: pa.array([None if i % 5 == 1 else b"z" * i * 50 for i in range(50)], pa.large_binary()),
        _all({"blob", "packed_struct"}, {"blob", "packed_struct"}),
        {"lance-encoding:blob": "true"},
    ),
    Case(
        "compressed strings",
        _strings,
        _all({"binary", "zstd"}, {"general", "variable"}),
        {"lance-encoding:compression": "zstd"},
    ),
    Case(
        "strings compressed with lz4",
        _strings,
        _all({"binary", "lz4"}, {"general", "variable"}),
        {"lance-encoding:compression": "lz4"},
    ),
    Case("strings as codes", _strings, _all({"fsst"}, {"fsst"}), {"lance-encoding:compression": "fsst"}),
    Case(
        "compressed integers",
        _small,
        _both({"general"}),
        {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "6"},
    ),
    Case(
        "split floats",
        lambda: pa.array(np.arange(N) / 7),
        _both({"general", "byte_stream_split"}),
        {"lance-encoding:compression": "lz4", "lance-encoding:bss": "on"},
    ),
    Case("uncompressed strings", _strings, _all({"binary"}, {"variable"}), {"lance-encoding:compression": "none"}),
    Case("uncompressed integers", _small, _both({"flat"}), {"lance-encoding:compression": "none"}),
    Case("zipped integers", _small, _both({"full_zip", "flat"}), {"lance-encoding:structural-encoding": "fullzip"}),
    Case(
        "zipped booleans",
        lambda: pa.array([True, False, False] * 50),
        _both({"full_zip", "flat"}),
        {"lance-encoding:structural-encoding": "fullzip"},
    ),
    Case(
        "long compressed strings",
        _long_strings,
        _both({"full_zip", "general"}),
        {"lance-encoding:compression": "zstd"},
    ),
)

UNREAD_CASES: tuple[Case, ...] = (
    Case("pairs beside a number", lambda: pa.array([{"a": _pair(i), "b": i} if i % 13 else None for i in range(N)])),
    Case("lists of pairs", lambda: pa.array([[_pair(j) for j in range(i, i + 1 + i % 3)] for i in range(N // 2)])),
    Case(
        "lists of lists of pairs",
        lambda: pa.array(
            [[[_pair(i), _pair(1)], [_pair(2)]][: 1 + i % 2] for i in range(N // 2)], pa.list_(pa.list_(_PAIR))
        ),
    ),
    Case(
        "lists of structs of pairs",
        lambda: pa.array([[{"a": _pair(i), "b": i}, None][: 1 + i % 2] for i in range(N // 2)]),
    ),
    Case(
        "maps of pairs",
        lambda: pa.array(
            [[("k", _pair(i)), ("l", _pair(2))][: 1 + i % 2] for i in range(N // 2)], pa.map_(pa.string(), _PAIR)
        ),
    ),
    Case(
        "fixed-size lists of structs of lists",
        lambda: pa.array(
            [[{"l": [i] * (i % 3), "x": i}, {"l": None, "x": None}] if i % 7 else None for i in range(N // 2)],
            pa.list_(pa.struct([("l", pa.list_(pa.int32())), ("x", pa.int32())]), 2),
        ),
    ),
    Case(
        "lists of fixed-size lists of structs of lists",
        lambda: pa.array(
            [[[{"l": [i] * (i % 3)}, None], None][: 1 + i % 2] for i in range(N // 2)],
            pa.list_(pa.list_(pa.struct([("l", pa.list_(pa.int32()))]), 2)),
        ),
    ),
    Case(
        "lists of fixed-size lists of structs of long strings",
        lambda: pa.array(
            [[[{"s": "long " * i}, {"s": None}], None][: 1 + i % 2] for i in range(50, 150)],
            pa.list_(pa.list_(pa.struct([("s", pa.string())]), 2)),
        ),
    ),
    Case(
        "structs without fields before others",
        lambda: pa.array([{"e": {}, "x": i} for i in range(N)]),
    ),
)
"""Columns that the reference writes to 2.2 files but cannot read, or reads as nulls."""

LEGACY_CASES: tuple[Case, ...] = (
    Case("integers", lambda: _with_nulls(_ints()), {"0.1": {"plain"}}),
    Case("booleans", lambda: pa.array(np.arange(N) % 3 == 0), {"0.1": {"plain"}}),
    Case("nulls", lambda: pa.nulls(N), {"0.1": {"null"}}),
    Case("strings", lambda: pa.array([["", "abc", None][i % 3] for i in range(N)]), {"0.1": {"binary"}}),
    Case("large binary", lambda: _random_bytes(30, N).cast(pa.large_binary()), {"0.1": {"binary"}}),
    Case("vectors", lambda: _vectors(3), {"0.1": {"plain"}}),
    Case(
        "vectors of booleans",
        lambda: pa.array([[True, i % 2 == 0, False] for i in range(N)], pa.list_(pa.bool_(), 3)),
        {"0.1": {"plain"}},
    ),
    Case("fixed binary", lambda: _random_bytes(5, N).cast(pa.binary(5)), {"0.1": {"plain"}}),
    Case("dictionaries", lambda: pa.array(["a", "", "bc"] * N).dictionary_encode(), {"0.1": {"dictionary"}}),
    Case("dictionaries of numbers", lambda: pa.array([10**12, 5] * N).dictionary_encode(), {"0.1": {"dictionary"}}),
    Case(
        "dictionaries in structs",
        lambda: pa.StructArray.from_arrays(
            [
                pa.array(["a", "bc"] * N, pa.large_string()).dictionary_encode(),
                pa.array([b"x", b"y"] * N).dictionary_encode().cast(pa.dictionary(pa.uint8(), pa.binary())),
            ],
            ["text", "bytes"],
        ),
        {"0.1": {"struct", "dictionary"}},
    ),
    Case(
        "dictionaries in lists",
        lambda: pa.ListArray.from_arrays(list(range(N + 1)), pa.array(["a", "bc"] * N).dictionary_encode()),
        {"0.1": {"list", "dictionary"}},
    ),
    Case("lists", lambda: pa.array([[i] * (i % 4) for i in range(N)]), {"0.1": {"list", "plain"}}),
    Case(
        "large lists of strings",
        lambda: pa.array([[str(i)] * (i % 4) for i in range(N)], pa.large_list(pa.string())),
        {"0.1": {"list", "binary"}},
    ),
    Case(
        "lists of structs of lists",
        lambda: pa.array([[{"a": [[i], []], "c": i}] * (i % 3) for i in range(N)]),
        {"0.1": {"list", "struct", "plain"}},
    ),
)

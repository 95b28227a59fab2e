"""Random Arrow columns of every type and nesting that the 2.x formats hold."""

from __future__ import annotations

import string
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from hypothesis import strategies as st

__all__ = ["arrays", "columns", "data_types"]

_SIGNED = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_UNSIGNED = {pa.uint8(): 8, pa.uint16(): 16, pa.uint32(): 32, pa.uint64(): 64}
_FLOATS: dict[pa.DataType, Any] = {pa.float16(): 16, pa.float32(): 32, pa.float64(): 64}
_TEXT = st.text(string.ascii_letters + "äß€🙂", max_size=12)
_DAYS = 20_000

FIXED_WIDTH: tuple[pa.DataType, ...] = (
    *_SIGNED,
    *_UNSIGNED,
    *_FLOATS,
    pa.bool_(),
    pa.decimal128(20, 3),
    pa.decimal256(50, 3),
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
    pa.timestamp("s"),
    pa.timestamp("us", "UTC"),
    pa.duration("ms"),
    pa.binary(5),
)
LEAVES: tuple[pa.DataType, ...] = (
    *FIXED_WIDTH,
    pa.null(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.int64()),
)


def _fixed_size_lists() -> st.SearchStrategy[pa.DataType]:
    flat = st.builds(pa.list_, st.sampled_from(FIXED_WIDTH), st.integers(1, 9))
    return flat | st.builds(pa.list_, flat, st.integers(1, 3))


def _structs(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.lists(children, min_size=1, max_size=3).map(
        lambda types: pa.struct([(f"f{i}", child) for i, child in enumerate(types)])
    )


def data_types(*, maps: bool = True, fixed_size_lists_of_structs: bool = False) -> st.SearchStrategy[pa.DataType]:
    """Types of a column."""
    leaves = st.sampled_from(LEAVES) | _fixed_size_lists()

    def nest(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        kinds = [_structs(children), st.builds(pa.list_, children), st.builds(pa.large_list, children)]
        if maps:
            kinds.append(st.builds(pa.map_, st.just(pa.string()), children))
        return st.one_of(kinds)

    nested = st.recursive(leaves, nest, max_leaves=4)
    if fixed_size_lists_of_structs:
        nested |= st.builds(pa.list_, _structs(st.sampled_from(FIXED_WIDTH)), st.integers(1, 3))
    return nested


def _optional(values: st.SearchStrategy[Any], nulls: bool) -> st.SearchStrategy[Any]:
    return st.none() | values if nulls else values


def values_of(arrow_type: pa.DataType, nulls: bool) -> st.SearchStrategy[Any]:
    """Python values that `pa.array` takes for a type, None among them if wanted."""
    return _optional(_values(arrow_type, nulls), nulls or pt.is_null(arrow_type))


def _values(kind: pa.DataType, nulls: bool) -> st.SearchStrategy[Any]:
    if kind in _SIGNED:
        return st.integers(-(1 << _SIGNED[kind]), (1 << _SIGNED[kind]) - 1) | st.integers(-3, 3)
    if kind in _UNSIGNED:
        return st.integers(0, (1 << _UNSIGNED[kind]) - 1) | st.integers(0, 3)
    if kind in _FLOATS:
        return st.floats(width=_FLOATS[kind], allow_nan=False)
    if pt.is_dictionary(kind):
        return st.sampled_from(_few(kind.value_type))
    if pt.is_fixed_size_list(kind):
        return st.lists(values_of(kind.value_type, nulls), min_size=kind.list_size, max_size=kind.list_size)
    if pt.is_struct(kind):
        return st.fixed_dictionaries({field.name: values_of(field.type, nulls) for field in kind})
    if pt.is_map(kind):
        return st.lists(st.tuples(_TEXT, values_of(kind.item_type, nulls)), max_size=3)
    if pt.is_list(kind) or pt.is_large_list(kind):
        return st.lists(values_of(kind.value_type, nulls), max_size=4)
    return next(make(kind) for accepts, make in _MAKERS if accepts(kind))


def _few(kind: pa.DataType) -> list[Any]:
    return ["a", "bc", ""] if pt.is_string(kind) else [0, -5, 10**12]


def _time_units(kind: pa.DataType) -> int:
    return {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]


_MAKERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], st.SearchStrategy[Any]]], ...] = (
    (pt.is_null, lambda _: st.none()),
    (pt.is_boolean, lambda _: st.booleans()),
    (pt.is_decimal, lambda kind: st.integers(-(10**18), 10**18).map(lambda n: Decimal(n).scaleb(-kind.scale))),
    (pt.is_date, lambda _: st.dates()),
    (pt.is_time, lambda kind: st.integers(0, 86_399 * _time_units(kind))),
    (pt.is_timestamp, lambda _: st.integers(-(10**10), 10**10)),
    (pt.is_duration, lambda _: st.integers(-_DAYS, _DAYS).map(lambda days: timedelta(days=days))),
    (pt.is_fixed_size_binary, lambda kind: st.binary(min_size=kind.byte_width, max_size=kind.byte_width)),
    (lambda kind: pt.is_string(kind) or pt.is_large_string(kind), lambda _: _TEXT | st.just("x" * 300)),
    (lambda kind: pt.is_binary(kind) or pt.is_large_binary(kind), lambda _: st.binary(max_size=12)),
)


@st.composite
def arrays(draw: st.DrawFn, kinds: st.SearchStrategy[pa.DataType]) -> pa.Array:
    """Columns with and without nulls, empty ones, and ones of many chunks and pages."""
    kind = draw(kinds)
    nulls = draw(st.booleans())
    values = draw(st.lists(values_of(kind, nulls), max_size=12))
    array = pa.array(values, kind)
    times = draw(st.sampled_from([1, 1, 1, 7, 500]))
    array = pa.concat_arrays([array] * times)
    skipped = draw(st.integers(0, min(3, len(array))))
    return array.slice(skipped)


def columns(*, maps: bool = True, fixed_size_lists_of_structs: bool = False) -> st.SearchStrategy[pa.Array]:
    """Columns of any type."""
    return arrays(data_types(maps=maps, fixed_size_lists_of_structs=fixed_size_lists_of_structs))

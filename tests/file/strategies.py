"""Random Arrow columns of every type and nesting that the file versions support."""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from hypothesis import strategies as st

__all__ = ["LIMITS", "Limits", "columns"]


@dataclass(frozen=True)
class Limits:
    """Which features a file version supports."""

    maps: bool = True
    fixed_size_lists_of_structs: bool = True
    null_structs: bool = True
    nulls: bool = True
    empty_strings: bool = True


LIMITS = {
    "0.1": Limits(False, False, False, False, False),
    "2.0": Limits(False, False, False),
    "2.1": Limits(False, False),
    "2.2": Limits(),
}

_SIGNED = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_UNSIGNED = {pa.uint8(): 8, pa.uint16(): 16, pa.uint32(): 32, pa.uint64(): 64}
_FLOATS: dict[pa.DataType, Any] = {pa.float16(): 16, pa.float32(): 32, pa.float64(): 64}
_SPECIAL_FLOATS = st.sampled_from([0.0, -0.0, math.nan, -math.nan])
_TEXT = st.text(string.ascii_letters + "äß€🙂", max_size=12)
_DAYS = 20_000
_BOOLEANS = st.booleans()
_REPETITIONS = st.sampled_from([1, 1, 1, 7, 500])

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


def _fixed_size_lists(limits: Limits) -> st.SearchStrategy[pa.DataType]:
    items = (*FIXED_WIDTH, pa.null()) if limits.nulls else FIXED_WIDTH
    flat = st.builds(pa.list_, st.sampled_from(items), st.integers(1, 9))
    return flat | st.builds(pa.list_, flat, st.integers(1, 3))


def _structs(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.lists(children, min_size=1, max_size=3).map(
        lambda types: pa.struct([(f"f{i}", child) for i, child in enumerate(types)])
    )


@cache  # to make a strategy takes longer than to draw from it
def data_types(limits: Limits) -> st.SearchStrategy[pa.DataType]:
    """Draw types of columns."""
    leaves = st.sampled_from(LEAVES) | _fixed_size_lists(limits)

    def nest(children: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
        kinds = [_structs(children), st.builds(pa.list_, children), st.builds(pa.large_list, children)]
        if limits.maps:
            kinds.append(st.builds(pa.map_, st.just(pa.string()), children))
        if limits.fixed_size_lists_of_structs:
            kinds.append(st.builds(pa.list_, _structs(children), st.integers(1, 3)))
        return st.one_of(kinds)

    return st.recursive(leaves, nest, max_leaves=4)


def _optional(values: st.SearchStrategy[Any], nulls: bool) -> st.SearchStrategy[Any]:
    return st.none() | values if nulls else values


@cache
def values_of(arrow_type: pa.DataType, limits: Limits) -> st.SearchStrategy[Any]:
    """Draw Python values that `pa.array` takes for a type; None among them if the limits allow nulls."""
    nulls = limits.nulls and (limits.null_structs or not pt.is_struct(arrow_type))
    return _optional(_values(arrow_type, limits), nulls or pt.is_null(arrow_type))


@cache
def _lists_of(arrow_type: pa.DataType, limits: Limits) -> st.SearchStrategy[list[Any]]:
    return st.lists(values_of(arrow_type, limits), max_size=12)


def _values(kind: pa.DataType, limits: Limits) -> st.SearchStrategy[Any]:
    if kind in _SIGNED:
        return st.integers(-(1 << _SIGNED[kind]), (1 << _SIGNED[kind]) - 1) | st.integers(-3, 3)
    if kind in _UNSIGNED:
        return st.integers(0, (1 << _UNSIGNED[kind]) - 1) | st.integers(0, 3)
    if kind in _FLOATS:
        return st.floats(width=_FLOATS[kind]) | _SPECIAL_FLOATS
    if pt.is_dictionary(kind):
        values = _distinct_values(kind.value_type)
        return st.sampled_from([value for value in values if value != "" or limits.empty_strings])
    if pt.is_fixed_size_list(kind):
        return st.lists(values_of(kind.value_type, limits), min_size=kind.list_size, max_size=kind.list_size)
    if pt.is_struct(kind):
        return st.fixed_dictionaries({field.name: values_of(field.type, limits) for field in kind})
    if pt.is_map(kind):
        return st.lists(st.tuples(_TEXT, values_of(kind.item_type, limits)), max_size=3)
    if pt.is_list(kind) or pt.is_large_list(kind):
        return st.lists(values_of(kind.value_type, limits), max_size=4)
    made = next(make(kind) for accepts, make in _MAKERS if accepts(kind))
    return made if limits.empty_strings else made.filter(lambda value: value not in ("", b""))


def _distinct_values(kind: pa.DataType) -> list[Any]:
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
def columns(draw: st.DrawFn, version: str, *, fixed_size_lists_of_structs: bool = True) -> pa.Array:
    """Draw columns of any type that a version supports: with and without nulls, empty, or of many chunks and pages."""
    limits = LIMITS[version]
    if not fixed_size_lists_of_structs:
        limits = replace(limits, fixed_size_lists_of_structs=False)
    kind = draw(data_types(limits))
    if not draw(_BOOLEANS):
        limits = replace(limits, nulls=False)
    values = draw(_lists_of(kind, limits))
    array = pa.array(values, kind)
    times = draw(_REPETITIONS)
    array = pa.concat_arrays([array] * times)
    skipped = draw(st.integers(0, min(3, len(array))))
    return array.slice(skipped)

"""The table of scalar functions that a filter may call, by DataFusion's names.

Like pyarrow's functions, each takes and returns arrays or scalars. Functions that become a node of the tree
(starts_with, is_valid, regexp_like, …) are in `binding.calls`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.predicate.functions.json_functions import (
    is_key,
    json_array_contains,
    json_array_length,
    json_exists,
    json_extract,
    json_get,
    json_get_bool,
    json_get_float,
    json_get_int,
    json_get_string,
)
from lance_ops.core.predicate.types import common_type, convert, is_binary, is_numeric, is_text

__all__ = ["ALL_FUNCTIONS", "FUNCTIONS", "Function"]


@dataclass(frozen=True)
class Function:
    """A function with its names, the first of which `to_sql` writes, and a type test for each argument.

    Arguments at the positions `fixed` must be literals; `evaluate` gets them as scalars. If `variadic`, the last test
    applies to all further arguments. An `operator` stands between the arguments in SQL, in place of a name.
    """

    names: tuple[str, ...]
    kinds: tuple[Callable[[pa.DataType], bool], ...]
    evaluate: Callable[..., Any]
    fixed: tuple[int, ...] = ()
    variadic: bool = False
    operator: str = ""

    def accepts(self, types: list[pa.DataType]) -> bool:
        """Whether the function can be called on arguments of these types; an untyped null fits every argument."""
        if len(types) < len(self.kinds) or (len(types) > len(self.kinds) and not self.variadic):
            return False
        kinds = self.kinds + self.kinds[-1:] * (len(types) - len(self.kinds))
        return all(pa.types.is_null(given) or kind(given) for kind, given in zip(kinds, types, strict=True))


def _any(arrow_type: pa.DataType) -> bool:
    return True


def _is_list(arrow_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type)
    )


def _is_instant(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow_type) or pa.types.is_date(arrow_type))


def _coalesce(*values: Any) -> Any:
    target = values[0].type
    for value in values[1:]:
        target = common_type(target, value.type) or target
    return pc.coalesce(*(convert(value, target) for value in values))


def _nullif(value: Any, unwanted: Any) -> Any:
    target = common_type(value.type, unwanted.type) or value.type
    same = pc.fill_null(pc.equal(convert(value, target), convert(unwanted, target)), False)
    return pc.if_else(same, pa.scalar(None, value.type), value)


def _concat(*values: Any) -> Any:
    """Join texts; unlike in `||`, a null counts as an empty text."""
    texts = [pc.coalesce(convert(value, pa.string()), "") for value in values]
    return pc.binary_join_element_wise(*texts, "")


def _join(*values: Any) -> Any:
    texts = [convert(value, pa.string()) for value in values]
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def _as_list(lists: Any) -> Any:
    if isinstance(lists, pa.Scalar):
        lists = pa.array([lists.as_py()], lists.type)
    return lists if pa.types.is_large_list(lists.type) else pc.cast(lists, pa.large_list(lists.type.value_type))


def _array_has_any(lists: Any, wanted: Any) -> Any:
    return _lists_with(lists, wanted.values, at_least=1)


def _array_has_all(lists: Any, wanted: Any) -> Any:
    needles = wanted.values.unique()
    return _lists_with(lists, needles, at_least=len(needles))


def _array_has(lists: Any, wanted: Any) -> Any:
    if not wanted.is_valid:
        return pa.scalar(None, pa.bool_())
    return _lists_with(lists, pa.array([wanted.as_py()], wanted.type), at_least=1)


def _lists_with(lists: Any, needles: pa.Array, at_least: int) -> Any:
    """Return for each list whether it has `at_least` different needles among its items; null for a null list."""
    rows = _as_list(lists)
    found = pc.index_in(pc.list_flatten(rows), value_set=convert(needles, rows.type.value_type))
    hit = pc.is_valid(found)
    # list_parent_indices would count items under a null list, which list_flatten drops.
    lengths = pc.fill_null(pc.list_value_length(rows), 0).to_numpy()
    parents = np.repeat(np.arange(len(rows)), lengths)[hit.to_numpy(zero_copy_only=False)]
    pairs = np.unique(parents * max(len(needles), 1) + found.filter(hit).to_numpy())
    counts = np.bincount(pairs // max(len(needles), 1), minlength=len(rows))
    result = pc.if_else(pc.is_valid(rows), pa.array(counts >= at_least), pa.scalar(None, pa.bool_()))
    return result[0] if isinstance(lists, pa.Scalar) else result


def _array_length(lists: Any) -> Any:
    return pc.cast(pc.list_value_length(lists), pa.int64())


def _list_element(lists: Any, position: Any) -> Any:
    """Return the item at a position; null outside the list. 1 is the first item, -1 the last."""
    rows = _as_list(lists)
    index = position.as_py()
    lengths = pc.list_value_length(rows)
    offset = pc.add(lengths, index) if index < 0 else pa.array(np.full(len(rows), index - 1), pa.int64())
    inside = pc.and_(pc.greater_equal(offset, 0), pc.less(offset, lengths))
    starts = pc.cast(pa.array(rows.offsets.to_numpy()[:-1]), pa.int64())
    result = rows.values.take(pc.if_else(inside, pc.add(starts, offset), pa.scalar(None, pa.int64())))
    return result[0] if isinstance(lists, pa.Scalar) else result


_DATE_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "dow": lambda instants: pc.day_of_week(instants, week_start=7),
    "doy": pc.day_of_year,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}
_TRUNCATIONS = frozenset(["year", "quarter", "month", "week", "day", "hour", "minute", "second"])


def _date_part(part: Any, instants: Any) -> Any:
    name = str(part.as_py()).lower()
    if name not in _DATE_PARTS:
        raise pa.ArrowInvalid(f"date_part takes {', '.join(_DATE_PARTS)}, not {name!r}")
    if pa.types.is_date(instants.type) and name in ("hour", "minute", "second"):
        instants = pc.cast(instants, pa.timestamp("s"))
    return pc.cast(_DATE_PARTS[name](instants), pa.int64())


def _date_trunc(unit: Any, instants: Any) -> Any:
    name = str(unit.as_py()).lower()
    if name not in _TRUNCATIONS:
        raise pa.ArrowInvalid(f"date_trunc takes {', '.join(sorted(_TRUNCATIONS))}, not {name!r}")
    stamps = convert(instants, pa.timestamp("us")) if pa.types.is_date(instants.type) else instants
    return pc.floor_temporal(stamps, unit=name)


ALL_FUNCTIONS: tuple[Function, ...] = (
    Function(("lower",), (is_text,), pc.utf8_lower),
    Function(("upper",), (is_text,), pc.utf8_upper),
    Function(("btrim", "trim"), (is_text,), lambda text: pc.utf8_trim(text, " ")),
    Function(("ltrim",), (is_text,), lambda text: pc.utf8_ltrim(text, " ")),
    Function(("rtrim",), (is_text,), lambda text: pc.utf8_rtrim(text, " ")),
    Function(("length", "char_length", "character_length"), (is_text,), lambda text: _long(pc.utf8_length(text))),
    Function(("octet_length",), (is_text,), lambda text: _long(pc.binary_length(text))),
    Function(("concat",), (_any,), _concat, variadic=True),
    Function(("text_join",), (_any,), _join, variadic=True, operator=" || "),
    Function(("abs",), (is_numeric,), pc.abs_checked),
    Function(("floor",), (is_numeric,), pc.floor),
    Function(("ceil",), (is_numeric,), pc.ceil),
    Function(("round",), (is_numeric,), lambda number: pc.round(number, round_mode="half_towards_infinity")),
    Function(("isnan",), (pa.types.is_floating,), pc.is_nan),
    Function(("coalesce",), (_any,), _coalesce, variadic=True),
    Function(("nullif",), (_any, _any), _nullif),
    Function(("date_part", "datepart"), (is_text, _is_instant), _date_part, fixed=(0,)),
    Function(("date_trunc", "datetrunc"), (is_text, _is_instant), _date_trunc, fixed=(0,)),
    Function(("array_has", "array_contains", "list_has", "list_contains"), (_is_list, _any), _array_has, fixed=(1,)),
    Function(("array_has_any", "list_has_any", "arrays_overlap"), (_is_list, _is_list), _array_has_any, fixed=(1,)),
    Function(("array_has_all", "list_has_all"), (_is_list, _is_list), _array_has_all, fixed=(1,)),
    Function(("array_length", "list_length", "cardinality"), (_is_list,), _array_length),
    Function(("json_extract",), (is_binary, is_text), json_extract, fixed=(1,)),
    Function(("json_exists",), (is_binary, is_text), json_exists, fixed=(1,)),
    Function(("json_get",), (is_binary, is_key), json_get, fixed=(1,)),
    Function(("json_get_string",), (is_binary, is_key), json_get_string, fixed=(1,)),
    Function(("json_get_int",), (is_binary, is_key), json_get_int, fixed=(1,)),
    Function(("json_get_float",), (is_binary, is_key), json_get_float, fixed=(1,)),
    Function(("json_get_bool",), (is_binary, is_key), json_get_bool, fixed=(1,)),
    Function(("json_array_contains",), (is_binary, is_text, _any), json_array_contains, fixed=(1, 2)),
    Function(("json_array_length",), (is_binary, is_text), json_array_length, fixed=(1,)),
    Function(("array_element", "list_element"), (_is_list, pa.types.is_integer), _list_element, fixed=(1,)),
)


def _long(values: Any) -> Any:
    return pc.cast(values, pa.int64())


FUNCTIONS: dict[str, Function] = {name: function for function in ALL_FUNCTIONS for name in function.names}

"""The table of scalar functions that a filter may call, by DataFusion's names.

Like pyarrow's functions, each takes and returns arrays or scalars. Functions that become a node of the tree
(starts_with, is_valid, regexp_like, …) are in `binding.calls`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import is_any_list, is_number, is_text
from lance_ops.core.predicate.functions.date_functions import date_part, date_trunc, is_instant, is_instant_or_time
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
from lance_ops.core.predicate.functions.regular_expressions import regexp_match
from lance_ops.core.predicate.functions.text_case import lower, upper
from lance_ops.core.predicate.types import common_type, convert, is_binary, wider_integer
from lance_ops.core.predicate.value_text import text_of
from lance_ops.core.records import dataclass

__all__ = ["ALL_FUNCTIONS", "FUNCTIONS", "Function"]


@dataclass(frozen=True)
class Function:
    """A function with its names, the first of which `to_sql` writes, and a type test for each argument.

    Arguments at the positions `fixed` must be literals; `evaluate` gets them as scalars. The last `optional` arguments
    may be left out. If `variadic`, the last test applies to all further arguments. An `operator` stands between the
    arguments in SQL, in place of a name.
    """

    names: tuple[str, ...]
    kinds: tuple[Callable[[pa.DataType], bool], ...]
    evaluate: Callable[..., Any]
    fixed: tuple[int, ...] = ()
    variadic: bool = False
    operator: str = ""
    optional: int = 0

    def accepts(self, types: list[pa.DataType]) -> bool:
        """Whether the function can be called on arguments of these types; an untyped null fits every argument."""
        least = len(self.kinds) - self.optional
        if len(types) < least or (len(types) > len(self.kinds) and not self.variadic):
            return False
        kinds = (self.kinds + self.kinds[-1:] * (len(types) - len(self.kinds)))[: len(types)]
        return all(pa.types.is_null(given) or kind(given) for kind, given in zip(kinds, types, strict=True))


def _any(arrow_type: pa.DataType) -> bool:
    return True


def _shared_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of a result that is one of two values; an integer beside a float becomes a float."""
    if pa.types.is_float32(left) and pa.types.is_integer(right):
        return left
    if pa.types.is_float32(right) and pa.types.is_integer(left):
        return right
    if pa.types.is_integer(left) and pa.types.is_integer(right):
        mixes_signs = pa.types.is_signed_integer(left) != pa.types.is_signed_integer(right)
        if not (mixes_signs and pa.uint64() in (left, right)):
            return wider_integer(left, right)
    return common_type(left, right) or right


def _coalesce(*values: Any) -> Any:
    target = values[0].type
    for value in values[1:]:
        if pa.types.is_null(target):
            target = value.type
        target = _shared_type(value.type, target)  # of two zones the later one, as in the reference
    return pc.coalesce(*(convert(value, target) for value in values))


def _nullif(value: Any, unwanted: Any) -> Any:
    """Return null for a value that equals the other, NaN included; the result has the type in which they compare."""
    target = _shared_type(unwanted.type, value.type)
    value, unwanted = convert(value, target), convert(unwanted, target)
    same = pc.equal(value, unwanted)
    if pa.types.is_floating(target):
        same = pc.or_(same, pc.and_(pc.is_nan(value), pc.is_nan(unwanted)))
    return pc.if_else(pc.fill_null(same, False), pa.scalar(None, target), value)


def _concat(*values: Any) -> Any:
    """Join texts; unlike in `||`, a null counts as an empty text."""
    texts = [pc.coalesce(_text(value, pa.string()), "") for value in values]
    return pc.binary_join_element_wise(*texts, "")


def _join(*values: Any) -> Any:
    target = pa.large_string() if any(pa.types.is_large_string(value.type) for value in values) else pa.string()
    if all(is_binary(value.type) or pa.types.is_null(value.type) for value in values):
        target = pa.binary()
    texts = [_text(value, target) for value in values]
    nothing = pa.scalar(b"", pa.binary()).cast(target)
    return pc.binary_join_element_wise(*texts, nothing, null_handling="emit_null")


def _text(value: Any, target: pa.DataType) -> Any:
    return convert(value, target) if is_text(value.type) or is_binary(target) else text_of(value, target)


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
    return pc.cast(pc.list_value_length(lists), pa.uint64())


def _rounded(number: Any, mode: str) -> Any:
    """Round to a whole number: a double for an integer, a decimal without fraction for a decimal."""
    if pa.types.is_integer(number.type):
        return pc.cast(number, options=pc.CastOptions(target_type=pa.float64(), allow_float_truncate=True))
    if not pa.types.is_decimal(number.type):
        return pc.round(number, round_mode=mode)
    wide = pa.decimal256(number.type.precision + 1, number.type.scale)  # 9.9 is rounded to one digit more
    return pc.cast(pc.round(pc.cast(number, wide), round_mode=mode), _whole_type(number.type))


def _whole_type(decimal: pa.DataType) -> pa.DataType:
    """Return the type of a decimal's rounded values; all its digits, as in the reference, or one if it had no whole."""
    digits = max(decimal.precision, decimal.precision - decimal.scale + 1)
    return pa.decimal128(digits, 0) if digits <= 38 else pa.decimal256(digits, 0)


def _is_nan(number: Any) -> Any:
    return pc.is_nan(number) if pa.types.is_floating(number.type) else pc.not_equal(number, number)


ALL_FUNCTIONS: tuple[Function, ...] = (
    Function(("lower",), (is_text,), lower),
    Function(("upper",), (is_text,), upper),
    Function(("btrim", "trim"), (is_text,), lambda text: pc.utf8_trim(text, " ")),
    Function(("ltrim",), (is_text,), lambda text: pc.utf8_ltrim(text, " ")),
    Function(("rtrim",), (is_text,), lambda text: pc.utf8_rtrim(text, " ")),
    Function(("length", "char_length", "character_length"), (is_text,), pc.utf8_length),
    Function(("octet_length",), (is_text,), pc.binary_length),
    Function(("concat",), (_any,), _concat, variadic=True),
    Function(("text_join",), (_any,), _join, variadic=True, operator=" || "),
    Function(("regexp_match",), (is_text, is_text, is_text), regexp_match, fixed=(1, 2), optional=1),
    Function(("abs",), (is_number,), pc.abs_checked),
    Function(("floor",), (is_number,), lambda number: _rounded(number, "down")),
    Function(("ceil",), (is_number,), lambda number: _rounded(number, "up")),
    Function(("round",), (is_number,), lambda number: _rounded(number, "half_towards_infinity")),
    Function(("isnan",), (is_number,), _is_nan),
    Function(("coalesce",), (_any,), _coalesce, variadic=True),
    Function(("nullif",), (_any, _any), _nullif),
    Function(("date_part", "datepart"), (is_text, is_instant_or_time), date_part, fixed=(0,)),
    Function(("date_trunc", "datetrunc"), (is_text, is_instant), date_trunc, fixed=(0,)),
    Function(("array_has", "array_contains", "list_has", "list_contains"), (is_any_list, _any), _array_has, fixed=(1,)),
    Function(
        ("array_has_any", "list_has_any", "arrays_overlap"), (is_any_list, is_any_list), _array_has_any, fixed=(1,)
    ),
    Function(("array_has_all", "list_has_all"), (is_any_list, is_any_list), _array_has_all, fixed=(1,)),
    Function(("array_length", "list_length", "cardinality"), (is_any_list,), _array_length),
    Function(("json_extract",), (is_binary, is_text), json_extract, fixed=(1,)),
    Function(("json_exists",), (is_binary, is_text), json_exists, fixed=(1,)),
    Function(("json_get",), (is_binary, is_key), json_get, fixed=(1,)),
    Function(("json_get_string",), (is_binary, is_key), json_get_string, fixed=(1,)),
    Function(("json_get_int",), (is_binary, is_key), json_get_int, fixed=(1,)),
    Function(("json_get_float",), (is_binary, is_key), json_get_float, fixed=(1,)),
    Function(("json_get_bool",), (is_binary, is_key), json_get_bool, fixed=(1,)),
    Function(("json_array_contains",), (is_binary, is_text, _any), json_array_contains, fixed=(1, 2)),
    Function(("json_array_length",), (is_binary, is_text), json_array_length, fixed=(1,)),
)


FUNCTIONS: dict[str, Function] = {name: function for function in ALL_FUNCTIONS for name in function.names}

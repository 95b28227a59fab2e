"""Build a call of a function by name: a condition of the tree, or a function of the function table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.predicate.binding import build
from lance_ops.core.predicate.binding.literal_coercion import compare_with_literal, same_for_all
from lance_ops.core.predicate.functions import FUNCTIONS, Function
from lance_ops.core.predicate.tree import UNKNOWN, Call, Compare, CompareOp, Expression, Literal
from lance_ops.core.predicate.types import compute_type

__all__ = ["call"]


def call(name: str, arguments: Sequence[Expression]) -> Expression:
    """Call a function by name.

    Raises `UnsupportedFeature` for an unknown name, `InvalidFilter` for arguments of the wrong number or type.
    """
    name = name.lower()
    if name in _CONDITIONS:
        most, condition = _CONDITIONS[name]
        if not most - _OPTIONAL.get(name, 0) <= len(arguments) <= most:
            raise InvalidFilter(f"{name} takes {most} arguments, not {len(arguments)}")
        return condition(*arguments)
    function = FUNCTIONS.get(name)
    if function is None:
        raise UnsupportedFeature(f"function {name} in a filter")
    if not function.accepts([argument.type for argument in arguments]):
        given = ", ".join(str(argument.type) for argument in arguments)
        raise InvalidFilter(f"{name} cannot be called with ({given})")
    for place in function.fixed:
        if not isinstance(arguments[place], Literal):
            raise UnsupportedFeature(f"{name} with an argument that is not a literal ({arguments[place].to_sql()})")
    first = function.names[0]
    if first in _WANTED_ITEMS:
        return _array_call(first, function, arguments)
    return _call(first, function, arguments)


def _call(name: str, function: Function, arguments: Sequence[Expression]) -> Expression:
    try:
        result = function.evaluate(*map(_without_rows, arguments))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidFilter(f"{name} cannot be called with these arguments: {error}") from error
    return build.fold(Call(name, tuple(arguments), result.type))


def _without_rows(argument: Expression) -> Any:
    """Return a placeholder for an argument, to find the type of the result: a literal's value or an empty array."""
    return argument.value if isinstance(argument, Literal) else pa.array([], argument.type)


def _array_call(name: str, function: Function, arguments: Sequence[Expression]) -> Expression:
    """Search lists for literals, converted exactly to the items' type; one that the type cannot hold never matches."""
    lists, literal = arguments
    wanted = literal.value if isinstance(literal, Literal) else pa.scalar(None)
    if not wanted.is_valid:
        return UNKNOWN
    item_type = compute_type(lists.type.value_type)
    items = [_fit(item, item_type) for item in ([wanted] if name == "array_has" else wanted.values)]
    possible = [item for item in items if item is not None]
    if len(possible) < len(items) and (name != "array_has_any" or not possible):
        return same_for_all(lists, False)
    plain = [item.as_py() for item in possible]
    needle = possible[0] if name == "array_has" else pa.scalar(plain, pa.list_(item_type))
    return _call(name, function, [lists, Literal(needle)])


def _fit(item: pa.Scalar, item_type: pa.DataType) -> pa.Scalar | None:
    """Return a literal in the items' type; None if no value of the type equals it."""
    if not item.is_valid:
        return pa.scalar(None, item_type)
    match compare_with_literal(CompareOp.EQ, Literal(pa.scalar(None, item_type)), Literal(item)):
        case Compare(_, _, Literal(value)) if value.type == item_type:
            return value
        case _:
            return None


def _regular_expression(operand: Expression, pattern: Expression, flags: Expression | None = None) -> Expression:
    letters = "" if flags is None else build.literal_text("regexp_like", operand, flags) or ""
    if set(letters) - {"i"}:
        raise UnsupportedFeature(f"flags {letters!r} of a regular expression in a filter")
    return build.matches(operand, pattern, ignore_case="i" in letters)


_CONDITIONS: dict[str, tuple[int, Callable[..., Expression]]] = {
    "starts_with": (2, build.starts_with),
    "ends_with": (2, build.ends_with),
    "contains": (2, build.contains),
    "regexp_like": (3, _regular_expression),
    "regexp_match": (3, _regular_expression),
    "is_valid": (1, lambda operand: build.negate(build.is_null(operand))),
    "isnull": (1, build.is_null),
}
_OPTIONAL = {"regexp_like": 1, "regexp_match": 1}
_WANTED_ITEMS = frozenset(["array_has", "array_has_any", "array_has_all"])

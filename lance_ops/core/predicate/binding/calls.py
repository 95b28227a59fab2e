"""Build a call of a function by name: a condition of the tree, or a function of the function table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from lance_ops.core.arrow import is_text
from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.predicate.arrow_type_names import spell_arrow_type
from lance_ops.core.predicate.binding import build
from lance_ops.core.predicate.binding.column_names import Name, field_of
from lance_ops.core.predicate.binding.literal_coercion import compare_with_literal, same_for_all
from lance_ops.core.predicate.binding.result_types import result_type
from lance_ops.core.predicate.functions import FUNCTIONS, Function
from lance_ops.core.predicate.tree import UNKNOWN, Call, Compare, CompareOp, Expression, Literal
from lance_ops.core.predicate.types import compute_type

__all__ = ["NODES", "call"]


def call(name: str, arguments: Sequence[Expression]) -> Expression:
    """Call a function by name.

    Raises `UnsupportedFeature` for an unknown name, `InvalidFilter` for arguments of the wrong number or type.
    """
    name = name.lower()
    if name in NODES:
        least, most, node = NODES[name]
        if not least <= len(arguments) <= most:
            raise InvalidFilter(f"{name} takes {most if least == most else least} arguments, not {len(arguments)}")
        return node(*arguments)
    function = FUNCTIONS.get(name)
    if function is None:
        raise UnsupportedFeature(f"function {name} in a filter")
    arguments = build.with_plain_numbers(arguments)
    if not function.accepts([argument.type for argument in arguments]):
        given = ", ".join(str(argument.type) for argument in arguments)
        raise InvalidFilter(f"{name} cannot be called with ({given})")
    for place in (place for place in function.fixed if place < len(arguments)):
        if not isinstance(arguments[place], Literal):
            raise UnsupportedFeature(f"{name} with an argument that is not a literal ({arguments[place].to_sql()})")
    first = function.names[0]
    if first == "regexp_match":
        build.matches(*arguments)  # raises for a pattern or for flags that are not supported
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


def _get_field(structs: Expression, *names: Expression) -> Expression:
    for name in names:
        if pa.types.is_null(structs.type):
            return structs
        if not isinstance(name, Literal) or not is_text(name.type) or not name.value.is_valid:
            raise InvalidFilter(f"get_field takes the names of fields as text, not {name.to_sql()}")
        structs = field_of(structs, Name(name.value.as_py()))
    return structs


_ANY_NUMBER = 1000
NODES: Mapping[str, tuple[int, int, Callable[..., Expression]]] = {
    "starts_with": (2, 2, build.starts_with),
    "ends_with": (2, 2, build.ends_with),
    "contains": (2, 2, build.contains),
    "regexp_like": (2, 3, build.matches),
    "is_valid": (1, 1, lambda operand: build.negate(build.is_null(operand))),
    "isnull": (1, 1, build.is_null),
    "get_field": (2, _ANY_NUMBER, _get_field),
    **dict.fromkeys(("array_element", "list_element", "array_extract", "list_extract"), (2, 2, build.list_element)),
    "arrow_typeof": (1, 1, lambda value: Literal(pa.scalar(spell_arrow_type(result_type(value))))),
    "arrow_cast": (2, 2, build.arrow_cast),
    "arrow_try_cast": (2, 2, partial(build.arrow_cast, lenient=True)),
}
"""The functions that become a node of their own, each with the least and the largest number of its arguments."""

_WANTED_ITEMS = frozenset(["array_has", "array_has_any", "array_has_all"])

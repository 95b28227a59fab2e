"""Translate a `pyarrow.compute` expression into a tree bound to a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.predicate.arrow.arrow_condition import arrow_condition
from lance_ops.core.predicate.arrow.arrow_nodes import ArrowNodes
from lance_ops.core.predicate.binding import Name, build, call, resolve
from lance_ops.core.predicate.tree import (
    UNKNOWN,
    ArithmeticOp,
    CompareOp,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Predicate,
    case,
)
from lance_ops.core.predicate.types import compute_type

__all__ = ["parse_arrow"]

Options: TypeAlias = Any
"""A `pa.StructScalar` of a function's options; None for a function without options."""


def parse_arrow(expression: pc.Expression, schema: pa.Schema, *, whatever_arrow_can: bool = False) -> Predicate:
    """Translate an expression; raises `UnsupportedFeature` naming the function that has no translation.

    With `whatever_arrow_can`, pyarrow evaluates the conjuncts that have no translation.
    """
    try:
        nodes = ArrowNodes(expression)
        if not whatever_arrow_can:
            return build.as_condition(_Translation(nodes, schema).node())
        return build.all_of(*(_condition(nodes, start, schema) for start in _conjuncts(nodes, 0)))
    except RecursionError as error:
        raise InvalidFilter("the filter is nested too deeply") from error


def _conjuncts(nodes: ArrowNodes, start: int) -> Iterator[int]:
    """Yield the position of each conjunct's first node."""
    if nodes[start] not in (("call", "and_kleene"), ("call", "and")):
        yield start
        return
    at = start + 1
    while nodes[at][0] != "end":
        yield from _conjuncts(nodes, at)
        at = nodes.end(at)


def _condition(nodes: ArrowNodes, start: int, schema: pa.Schema) -> Predicate:
    try:
        return build.as_condition(_Translation(nodes, schema, start).node())
    except (InvalidFilter, UnsupportedFeature):
        left_to_arrow = arrow_condition(nodes.expression(start), nodes.fields(start), schema)
        if left_to_arrow is None:
            raise
        return left_to_arrow


class _Translation:
    """Translates the node at `start` and the nodes below it, in one pass."""

    def __init__(self, nodes: ArrowNodes, schema: pa.Schema, start: int = 0) -> None:
        self._nodes = nodes
        self._schema = schema
        self._at = start

    def node(self) -> Expression:
        return self._node(*self._next())

    def _next(self) -> tuple[str, str]:
        self._at += 1
        return self._nodes[self._at - 1]

    def _node(self, key: str, value: str) -> Expression:
        match key:
            case "call":
                return self._call(value)
            case "literal":
                return _literal(self._nodes.value(value))
            case "field_ref":
                return resolve(self._schema, [Name(value)])
            case "nested_field_ref":
                return resolve(self._schema, [Name(self._next()[1]) for _ in range(int(value))])
            case _:
                raise UnsupportedFeature(f"{key} in a pyarrow expression used as a filter")

    def _call(self, function: str) -> Expression:
        arguments: list[Expression] = []
        options: Options = None
        while True:
            key, value = self._next()
            if key == "end":
                break
            if key == "options":
                options = self._nodes.value(value)
            else:
                arguments.append(self._node(key, value))
        translate = _FUNCTIONS.get(function)
        if translate is None:
            raise UnsupportedFeature(f"function {function} in a pyarrow expression used as a filter")
        return translate(arguments, options)


def _literal(value: pa.Scalar) -> Literal:
    plain = compute_type(value.type)
    return Literal(value if plain == value.type else pa.scalar(value.as_py(), plain))


def _option(options: Options, name: str) -> Any:
    return None if options is None else options[name].as_py()


def _refuse(options: Options, *names: str) -> None:
    for name in names:
        if _option(options, name):
            raise UnsupportedFeature(f"option {name} in a pyarrow expression used as a filter")


def _comparison(op: CompareOp) -> Callable[[list[Expression], Options], Expression]:
    return lambda arguments, _: build.compare(op, *arguments)


def _arithmetic(op: ArithmeticOp) -> Callable[[list[Expression], Options], Expression]:
    return lambda arguments, _: build.arithmetic(op, *arguments)


def _named(name: str) -> Callable[[list[Expression], Options], Expression]:
    return lambda arguments, _: call(name, arguments)


def _is_null(arguments: list[Expression], options: Options) -> Expression:
    (operand,) = arguments
    if _option(options, "nan_is_null") and pa.types.is_floating(operand.type):
        return build.any_of(build.is_null(operand), build.as_condition(call("isnan", [operand])))
    return build.is_null(operand)


def _is_in(arguments: list[Expression], options: Options) -> Expression:
    if options is None:
        raise UnsupportedFeature("is_in without values in a pyarrow expression used as a filter")
    return build.is_in(arguments[0], [_literal(value) for value in options["value_set"].values])


def _if_else(arguments: list[Expression], _: Options) -> Expression:
    condition, value, otherwise = arguments
    if isinstance(otherwise, Literal) and not otherwise.value.is_valid and _is_unknown_unless(condition, value):
        return value
    return case([(build.as_condition(condition), value)], otherwise)


def _is_unknown_unless(condition: Expression, value: Expression) -> bool:
    """Whether the condition is `x IS NOT NULL` and the value `x [NOT] IN …`, which is null anyway where x is null."""
    membership = value.part if isinstance(value, Not) else value
    guarded = condition.part.operand if isinstance(condition, Not) and isinstance(condition.part, IsNull) else None
    return isinstance(membership, In) and membership.operand == guarded


def _pattern(
    condition: Callable[[Expression, Expression], Expression],
) -> Callable[[list[Expression], Options], Expression]:
    def translate(arguments: list[Expression], options: Options) -> Expression:
        _refuse(options, "ignore_case")
        return condition(arguments[0], _pattern_of(options))

    return translate


def _like(arguments: list[Expression], options: Options) -> Expression:
    return build.like(arguments[0], _pattern_of(options), bool(_option(options, "ignore_case")))


def _matches(arguments: list[Expression], options: Options) -> Expression:
    flags = Literal(pa.scalar("i")) if _option(options, "ignore_case") else None
    return build.matches(arguments[0], _pattern_of(options), flags)


def _pattern_of(options: Options) -> Literal:
    return Literal(pa.scalar(_option(options, "pattern")))


def _cast(arguments: list[Expression], options: Options) -> Expression:
    if options is None:
        raise UnsupportedFeature("cast without a type in a pyarrow expression used as a filter")
    return build.cast(arguments[0], compute_type(options["to_type"].type))


_FUNCTIONS: dict[str, Callable[[list[Expression], Options], Expression]] = {
    "and": lambda arguments, _: build.all_of(*map(build.as_condition, arguments)),
    "and_kleene": lambda arguments, _: build.all_of(*map(build.as_condition, arguments)),
    "or": lambda arguments, _: build.any_of(*map(build.as_condition, arguments)),
    "or_kleene": lambda arguments, _: build.any_of(*map(build.as_condition, arguments)),
    "invert": lambda arguments, _: build.negate(build.as_condition(arguments[0])),
    "equal": _comparison(CompareOp.EQ),
    "not_equal": _comparison(CompareOp.NE),
    "less": _comparison(CompareOp.LT),
    "less_equal": _comparison(CompareOp.LE),
    "greater": _comparison(CompareOp.GT),
    "greater_equal": _comparison(CompareOp.GE),
    "if_else": _if_else,
    "is_null": _is_null,
    "is_valid": lambda arguments, _: build.negate(build.is_null(arguments[0])),
    "true_unless_null": lambda arguments, _: build.any_of(build.negate(build.is_null(arguments[0])), UNKNOWN),
    "is_in": _is_in,
    "is_nan": _named("isnan"),
    "starts_with": _pattern(build.starts_with),
    "ends_with": _pattern(build.ends_with),
    "match_substring": _pattern(build.contains),
    "match_like": _like,
    "match_substring_regex": _matches,
    "cast": _cast,
    "negate": lambda arguments, _: build.minus(arguments[0]),
    "negate_checked": lambda arguments, _: build.minus(arguments[0]),
    "abs": _named("abs"),
    "abs_checked": _named("abs"),
    "utf8_lower": _named("lower"),
    "utf8_upper": _named("upper"),
    "utf8_length": _named("length"),
    "binary_length": _named("octet_length"),
    "list_value_length": _named("array_length"),
    "coalesce": _named("coalesce"),
    **{
        name + suffix: _arithmetic(op)
        for name, op in (
            ("add", ArithmeticOp.ADD),
            ("subtract", ArithmeticOp.SUBTRACT),
            ("multiply", ArithmeticOp.MULTIPLY),
            ("divide", ArithmeticOp.DIVIDE),
        )
        for suffix in ("", "_checked")
    },
}

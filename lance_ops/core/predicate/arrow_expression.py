"""A `pyarrow.compute` expression, translated into a tree bound to a schema.

pyarrow has no way to walk an expression but pickles one as an Arrow file: a batch of one row holds its literals and
options, and the schema's metadata lists its nodes in order, parents first, as (key, value) pairs

    call NAME … end NAME              a function with the nodes between as arguments, `options COLUMN` before the end
    field_ref NAME                    a column
    nested_field_ref N, N field_refs  a field of a struct
    literal COLUMN                    a value

Keys repeat, which pyarrow's own metadata (a dict) does not show, so the pairs are read where Arrow's C data interface
puts them: a count, then length and bytes of each key and value, lengths as 32-bit integers of the machine.
(Substrait, the other way out of pyarrow, refuses a good part of the functions and types wanted here.)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.predicate import build
from lance_ops.core.predicate.calls import call
from lance_ops.core.predicate.conditions import CompareOp
from lance_ops.core.predicate.nodes import Expression, Predicate
from lance_ops.core.predicate.resolve import Name, resolve
from lance_ops.core.predicate.types import compute_type
from lance_ops.core.predicate.values import ArithmeticOp, Literal

__all__ = ["parse_arrow"]

Options: TypeAlias = Any
"""A `pa.StructScalar` of a function's options, None for a function that has none."""


def parse_arrow(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """Translate an expression; raises `UnsupportedFeature` naming the function that has no translation."""
    try:
        return build.truth(_Translation(expression, schema).node())
    except RecursionError as error:
        raise InvalidFilter("the filter is nested too deeply") from error


class _Translation:
    """One pass over the list of nodes."""

    def __init__(self, expression: pc.Expression, schema: pa.Schema) -> None:
        _, (data,) = expression.__reduce__()
        with pa.ipc.open_file(data) as file:
            self.values = file.get_batch(0)
            self.pairs = iter(_metadata_pairs(file.schema))
        self.schema = schema

    def node(self) -> Expression:
        return self._node(*next(self.pairs))

    def _node(self, key: str, value: str) -> Expression:
        match key:
            case "call":
                return self._call(value)
            case "literal":
                return _literal(self._value(value))
            case "field_ref":
                return resolve(self.schema, [Name(value)])
            case "nested_field_ref":
                return resolve(self.schema, [Name(next(self.pairs)[1]) for _ in range(int(value))])
            case _:
                raise UnsupportedFeature(f"{key} in a pyarrow expression used as a filter")

    def _call(self, function: str) -> Expression:
        arguments: list[Expression] = []
        options: Options = None
        for key, value in self.pairs:
            if key == "end":
                break
            if key == "options":
                options = self._value(value)
            else:
                arguments.append(self._node(key, value))
        translate = _FUNCTIONS.get(function)
        if translate is None:
            raise UnsupportedFeature(f"function {function} in a pyarrow expression used as a filter")
        return translate(arguments, options)

    def _value(self, column: str) -> Any:
        return self.values.column(int(column))[0]


def _metadata_pairs(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    capsule = schema.__arrow_c_schema__()  # holds the memory read below
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = _ArrowSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    texts = []

    def number() -> int:
        nonlocal address
        value = ctypes.c_int32.from_address(address).value
        address += 4
        return value

    for _ in range(2 * number()):
        size_bytes = number()
        texts.append(ctypes.string_at(address, size_bytes).decode())
        address += size_bytes
    return zip(texts[::2], texts[1::2], strict=True)


class _ArrowSchema(ctypes.Structure):
    """The start of the C data interface's `struct ArrowSchema`."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


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
        return build.any_of(build.is_null(operand), build.truth(call("isnan", [operand])))
    return build.is_null(operand)


def _is_in(arguments: list[Expression], options: Options) -> Expression:
    if options is None:
        raise UnsupportedFeature("is_in without values in a pyarrow expression used as a filter")
    return build.is_in(arguments[0], [_literal(value) for value in options["value_set"].values])


def _pattern(
    condition: Callable[[Expression, Expression], Expression],
) -> Callable[[list[Expression], Options], Expression]:
    def translate(arguments: list[Expression], options: Options) -> Expression:
        _refuse(options, "ignore_case")
        return condition(arguments[0], Literal(pa.scalar(_option(options, "pattern"))))

    return translate


def _caseless(
    condition: Callable[[Expression, Expression, bool], Expression],
) -> Callable[[list[Expression], Options], Expression]:
    def translate(arguments: list[Expression], options: Options) -> Expression:
        pattern = Literal(pa.scalar(_option(options, "pattern")))
        return condition(arguments[0], pattern, bool(_option(options, "ignore_case")))

    return translate


def _cast(arguments: list[Expression], options: Options) -> Expression:
    if options is None:
        raise UnsupportedFeature("cast without a type in a pyarrow expression used as a filter")
    return build.cast(arguments[0], compute_type(options["to_type"].type))


_FUNCTIONS: dict[str, Callable[[list[Expression], Options], Expression]] = {
    "and": lambda arguments, _: build.all_of(*map(build.truth, arguments)),
    "and_kleene": lambda arguments, _: build.all_of(*map(build.truth, arguments)),
    "or": lambda arguments, _: build.any_of(*map(build.truth, arguments)),
    "or_kleene": lambda arguments, _: build.any_of(*map(build.truth, arguments)),
    "invert": lambda arguments, _: build.negate(build.truth(arguments[0])),
    "equal": _comparison(CompareOp.EQ),
    "not_equal": _comparison(CompareOp.NE),
    "less": _comparison(CompareOp.LT),
    "less_equal": _comparison(CompareOp.LE),
    "greater": _comparison(CompareOp.GT),
    "greater_equal": _comparison(CompareOp.GE),
    "is_null": _is_null,
    "is_valid": lambda arguments, _: build.negate(build.is_null(arguments[0])),
    "true_unless_null": lambda arguments, _: build.negate(build.is_null(arguments[0])),
    "is_in": _is_in,
    "is_nan": _named("isnan"),
    "starts_with": _pattern(build.starts_with),
    "ends_with": _pattern(build.ends_with),
    "match_substring": _pattern(build.contains),
    "match_like": _caseless(build.like),
    "match_substring_regex": _caseless(build.matches),
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

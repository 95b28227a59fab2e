"""Build predicates and expressions from parts, with their types checked.

The translations of SQL text, pyarrow expressions and Spark's pushed filters all use these functions. Each raises
`InvalidFilter` for parts whose types do not fit, and returns the tree in normal form: literals on the right and in the
type of the other side, negations pushed inward, constants folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from lance_ops.core.arrow import array_of_scalars, is_any_list, is_number, is_text, scalar
from lance_ops.core.errors import InvalidFilter, InvalidInput, UnsupportedFeature
from lance_ops.core.predicate.arrow_type_names import parse_arrow_type
from lance_ops.core.predicate.binding.instants import parse_instant
from lance_ops.core.predicate.binding.literal_coercion import compare_with_literal, same_for_all
from lance_ops.core.predicate.binding.result_types import result_type
from lance_ops.core.predicate.functions import FLAGS
from lance_ops.core.predicate.tree import (
    NANOSECONDS,
    UNKNOWN,
    Arithmetic,
    ArithmeticOp,
    BooleanValue,
    Call,
    Cast,
    Compare,
    CompareOp,
    ComputedNumber,
    Contains,
    EndsWith,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    ListElement,
    Literal,
    Minus,
    PointNumber,
    Predicate,
    RegexMatches,
    StartsWith,
    all_of,
    any_of,
    arithmetic_type,
    like_parts,
    negate,
    order_key,
)
from lance_ops.core.predicate.types import common_type, compute_type, convert, exact_type

__all__ = [
    "all_of",
    "any_of",
    "arithmetic",
    "arrow_cast",
    "as_condition",
    "between",
    "cast",
    "compare",
    "contains",
    "ends_with",
    "fold",
    "is_in",
    "is_not_distinct",
    "is_null",
    "is_true",
    "like",
    "list_element",
    "literal_text",
    "matches",
    "minus",
    "negate",
    "starts_with",
    "with_plain_numbers",
]

_INEXACT = (ArithmeticOp.DIVIDE, ArithmeticOp.REMAINDER)
_ONE_ROW = pa.record_batch([pa.nulls(1)], names=["nothing"])


def as_condition(value: Expression) -> Predicate:
    """Return a boolean value as a condition; as in the reference, `regexp_match` asks whether there is a match."""
    if isinstance(value, Predicate):
        return value
    if pa.types.is_null(value.type):
        return UNKNOWN
    if isinstance(value, Call) and value.function == "regexp_match":
        return is_true(matches(*value.arguments))
    if not pa.types.is_boolean(value.type):
        raise InvalidFilter(f"{value.to_sql()} is {value.type}, not a condition")
    return BooleanValue(value)


def compare(op: CompareOp, left: Expression, right: Expression) -> Predicate:
    """Compare two values."""
    if isinstance(left, Literal) and (not isinstance(right, Literal) or is_text(left.type)):
        op, left, right = op.mirrored, right, left
    if isinstance(right, Literal):
        return compare_with_literal(op, left, right)
    shared = common_type(left.type, right.type)
    if shared is None:
        raise InvalidFilter(f"{left.to_sql()} ({left.type}) and {right.to_sql()} ({right.type}) do not compare")
    if pa.types.is_nested(shared):
        raise UnsupportedFeature(f"comparison of {shared} in a filter", left.to_sql())
    return Compare(op, left, right)


def between(value: Expression, low: Expression, high: Expression) -> Predicate:
    """Test whether a value lies between two others, both included."""
    return all_of(compare(CompareOp.GE, value, low), compare(CompareOp.LE, value, high))


def is_in(operand: Expression, items: Sequence[Expression]) -> Predicate:
    """Test whether a value is in a list, as in SQL: without a match, a null in the list makes the result unknown."""
    literals = [item for item in items if isinstance(item, Literal)]
    if len(literals) < len(items) or isinstance(operand, Literal):
        return any_of(*(compare(CompareOp.EQ, operand, item) for item in items))
    matches = [compare_with_literal(CompareOp.EQ, operand, item) for item in literals]
    or_null = UNKNOWN in matches
    wanted = [match.right.value for match in matches if isinstance(match, Compare) and isinstance(match.right, Literal)]
    unique = {order_key(value): value for value in wanted if value.type == operand.type and not _is_nan(value)}
    values = [unique[key] for key in sorted(unique)] + [value for value in wanted if _is_nan(value)][:1]
    if not values:
        return UNKNOWN if or_null else same_for_all(operand, False)
    if len(values) == 1 and not or_null:
        return Compare(CompareOp.EQ, operand, Literal(values[0]))
    return In(operand, array_of_scalars(values, operand.type), or_null)


def is_null(operand: Expression) -> Predicate:
    """Test whether a value is null."""
    if isinstance(operand, Call) and operand.function == "regexp_match":
        return negate(as_condition(operand))
    return IsNull(operand)


def is_true(operand: Expression, value: bool | None = True) -> Predicate:
    """Test whether a condition is true (or false, or unknown for None); the result is never unknown."""
    condition = as_condition(operand)
    if value is None:
        return IsNull(condition)
    return IsTrue(condition if value else negate(condition))


def is_not_distinct(left: Expression, right: Expression) -> Predicate:
    """Test equality with nulls equal to each other; the result is never unknown."""
    return any_of(all_of(IsNull(left), IsNull(right)), IsTrue(compare(CompareOp.EQ, left, right)))


def like(operand: Expression, pattern: Expression, ignore_case: bool = False, escape: str = "\\") -> Predicate:
    """Match a LIKE pattern; return the simplest equivalent condition."""
    text = literal_text("LIKE", operand, pattern)
    if text is None:
        return UNKNOWN
    parts = like_parts(text, escape)
    canonical = "".join(char if special or char not in "%_\\" else "\\" + char for char, special in parts)
    if ignore_case:
        return Like(operand, canonical, ignore_case=True)
    wildcards = [place for place, (char, special) in enumerate(parts) if special]
    plain = "".join(char for char, special in parts if not special)
    last = len(parts) - 1
    if not wildcards:
        return compare(CompareOp.EQ, operand, Literal(scalar(plain)))
    if any(parts[place][0] == "_" for place in wildcards):
        return Like(operand, canonical)
    match wildcards:
        case [place] if place == last and plain:
            return StartsWith(operand, plain)
        case [0] if plain:
            return EndsWith(operand, plain)
        case [0, place] if place == last and plain:
            return Contains(operand, plain)
        case _:
            return Like(operand, canonical)


def starts_with(operand: Expression, prefix: Expression) -> Predicate:
    """Test whether a text starts with another."""
    text = literal_text("starts_with", operand, prefix)
    return UNKNOWN if text is None else StartsWith(operand, text)


def ends_with(operand: Expression, suffix: Expression) -> Predicate:
    """Test whether a text ends with another."""
    text = literal_text("ends_with", operand, suffix)
    return UNKNOWN if text is None else EndsWith(operand, text)


def contains(operand: Expression, part: Expression) -> Predicate:
    """Test whether a text contains another."""
    text = literal_text("contains", operand, part)
    return UNKNOWN if text is None else Contains(operand, text)


def matches(operand: Expression, pattern: Expression, flags: Expression | None = None) -> Predicate:
    """Test whether a regular expression matches anywhere in a text; `flags` are letters, as for `regexp_like`."""
    text = literal_text("regexp_like", operand, pattern)
    if text is None:
        return UNKNOWN
    letters = "" if flags is None else literal_text("regexp_like", operand, flags) or ""
    if set(letters) - FLAGS:
        raise UnsupportedFeature(f"flags {letters!r} of a regular expression in a filter")
    others = "".join(sorted(set(letters) - {"i"}))
    condition = RegexMatches(operand, f"(?{others}){text}" if others else text, "i" in letters)
    _checked(replace(condition, operand=Literal(scalar(""))))
    return condition


def arithmetic(op: ArithmeticOp, left: Expression, right: Expression) -> Expression:
    """Combine two numbers."""
    for side in (left, right):
        if not is_number(side.type) and not pa.types.is_null(side.type):
            raise InvalidFilter(f"{side.to_sql()} is {side.type}, and {op} needs numbers")
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        known = left if pa.types.is_null(right.type) else right
        kind = known.stored_type if isinstance(known, PointNumber) else known.type
        return Literal(scalar(None, pa.int64() if pa.types.is_null(kind) else kind))
    exact = isinstance(left, PointNumber) and isinstance(right, PointNumber) and op not in _INEXACT
    if not exact:
        left, right = _number(left, right), _number(right, left)
    return _folded(Arithmetic(op, left, right, arithmetic_type(op, left.type, right.type)), exact)


def minus(operand: Expression) -> Expression:
    """Negate a number."""
    if not is_number(operand.type):
        raise InvalidFilter(f"{operand.to_sql()} is {operand.type}, and - needs a number")
    if isinstance(operand, PointNumber) and not operand.value.as_py():
        operand = _as_double(operand)  # a decimal has no -0.0
    if isinstance(operand, Literal) and pa.types.is_integer(operand.type) and operand.value.is_valid:
        return replace(operand, value=_negative(operand.value))
    return _folded(Minus(operand), isinstance(operand, PointNumber))


def _negative(number: pa.Scalar) -> pa.Scalar:
    """Return the negative of an integer in its type, or in a wider one that holds it."""
    value = -number.as_py()
    for kind in (number.type, pa.int64()):
        if pa.types.is_signed_integer(kind) and -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1):
            return scalar(value, kind)
    return scalar(Decimal(value), exact_type(pa.uint64()))


def cast(operand: Expression, target: pa.DataType, lenient: bool = False) -> Expression:
    """Cast a value to another type."""
    if operand.stored_type == target and operand.type == compute_type(target) and result_type(operand) == target:
        return operand
    if isinstance(operand, Literal) and is_text(operand.type) and pa.types.is_timestamp(target):
        return _cast_text(operand, target, lenient)
    try:
        Cast(Literal(scalar(None, operand.type)), target, lenient).evaluate(_ONE_ROW)
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedFeature(f"cast of {operand.type} to {target} in a filter", operand.to_sql()) from error
    value = fold(Cast(operand, target, lenient))
    return Literal(value.value) if isinstance(value, ComputedNumber) and is_text(operand.type) else value


def arrow_cast(operand: Expression, name: Expression, lenient: bool = False) -> Expression:
    """Cast a value to the type of that Arrow name."""
    if not isinstance(name, Literal) or not is_text(name.type) or not name.value.is_valid:
        raise InvalidFilter(f"arrow_cast takes the name of an Arrow type as text, not {name.to_sql()}")
    return cast(operand, parse_arrow_type(name.value.as_py()), lenient)


def list_element(lists: Expression, position: Expression) -> Expression:
    """Return the item at a position of each list; an item of NULL is NULL."""
    if not is_any_list(lists.type) and not pa.types.is_null(lists.type):
        raise InvalidFilter(f"{lists.to_sql()} is {lists.type} and has no items")
    if pa.types.is_null(position.type):
        position = Literal(scalar(None, pa.int64()))
    if not pa.types.is_integer(position.type) or pa.types.is_uint64(position.type):
        raise InvalidFilter(f"{position.to_sql()} is {position.type}, and the position of an item is an int64")
    if pa.types.is_null(lists.type):
        return Literal(scalar(None, pa.null()))
    return fold(ListElement(lists, position, lists.type.value_type))


def fold(value: Expression) -> Expression:
    """Return an expression of literals as one literal; return any other expression unchanged."""
    if value.stored_type != value.type or not all(isinstance(child, Literal) for child in value.children):
        return value
    computed = _checked(value)
    return ComputedNumber(computed) if is_number(computed.type) else Literal(computed)


def literal_text(function: str, operand: Expression, pattern: Expression) -> str | None:
    """Return the text of a pattern; None for a null pattern, whose result is unknown for every row."""
    if not is_text(operand.type):
        raise InvalidFilter(f"{operand.to_sql()} is {operand.type}, and {function} needs text")
    if not isinstance(pattern, Literal):
        raise UnsupportedFeature(f"{function} with a pattern that is not a literal ({pattern.to_sql()})")
    if not pattern.value.is_valid:
        return None
    if not is_text(pattern.type):
        raise InvalidFilter(f"{pattern.to_sql()} is {pattern.type}, and {function} needs text")
    return str(pattern.value.as_py())


def _checked(value: Expression) -> pa.Scalar:
    try:
        return value.evaluate(_ONE_ROW)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InvalidInput) as error:
        raise InvalidFilter(f"{value.to_sql()} cannot be computed: {error}") from error


def _cast_text(text: Literal, target: pa.DataType, lenient: bool) -> Literal:
    """Parse a timestamp with any number of digits or with a zone; pyarrow's cast refuses some of these."""
    instant = parse_instant(text.value.as_py()) if text.value.is_valid else None
    if instant is None and text.value.is_valid and not lenient:
        raise InvalidFilter(f"{text.to_sql()} is not a timestamp")
    ticks = None if instant is None else instant.nanoseconds // NANOSECONDS[target.unit]
    return Literal(scalar(ticks, target))


def with_plain_numbers(values: Sequence[Expression]) -> Sequence[Expression]:
    """Return the values; a literal with a decimal point is a double unless another value is a decimal."""
    if any(pa.types.is_decimal(value.type) and not isinstance(value, PointNumber) for value in values):
        return values
    return [_as_double(value) if isinstance(value, PointNumber) else value for value in values]


def _folded(value: Expression, exact: bool) -> Expression:
    """Return an expression of literals as a literal; `exact` if all its literals are numbers with a point."""
    folded = fold(value)
    return PointNumber(folded.value) if exact and isinstance(folded, Literal) else folded


def _as_double(number: PointNumber) -> Literal:
    return Literal(convert(number.value, pa.float64()))


def _number(side: Expression, other: Expression) -> Expression:
    """Return an operand; a literal is converted to the kind of number that the other side is, if that holds it.

    A literal with a decimal point is a double unless the other side is a decimal.
    """
    if not isinstance(side, Literal) or not side.value.is_valid:
        return side
    if isinstance(side, PointNumber) and (isinstance(other, PointNumber) or not pa.types.is_decimal(other.type)):
        return _as_double(side)
    if pa.types.is_integer(side.type) and side.value.as_py() >= 0 and pa.types.is_uint64(other.type):
        return Literal(convert(side.value, pa.uint64()))
    return side


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type)) and value.as_py() != value.as_py()

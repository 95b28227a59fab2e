"""Expressions that are not conditions: columns, literals, arithmetic, casts, list elements and calls of functions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.predicate.functions import FUNCTIONS
from lance_ops.core.predicate.tree.column_stats import Bounds, Statistics
from lance_ops.core.predicate.tree.nodes import Expression, Values
from lance_ops.core.predicate.tree.sql_spelling import spell_path, spell_scalar, spell_type
from lance_ops.core.predicate.types import cast_each, compute_type, convert, exact_type

__all__ = ["Arithmetic", "ArithmeticOp", "Call", "Cast", "Column", "Literal", "Minus", "arithmetic_type"]


@dataclass(frozen=True)
class Column(Expression):
    """A column, or a field of a struct column, by its exact name; a field is null where its struct is null."""

    path: tuple[str, ...]
    arrow_type: pa.DataType

    @property
    def name(self) -> str:
        """The path's names joined by dots; a name that contains a dot is back-quoted."""
        return ".".join(f"`{name}`" if "." in name else name for name in self.path)

    @property
    def type(self) -> pa.DataType:
        return compute_type(self.arrow_type)

    @property
    def children(self) -> tuple[Expression, ...]:
        return ()

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        if self.path[0] not in batch.schema.names:
            raise InvalidInput(f"the filter needs column {self.name!r}, and the batch has only {batch.schema.names}")
        values = batch.column(self.path[0])
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if len(self.path) > 1:
            values = pc.struct_field(values, list(self.path[1:]))
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        return values if values.type == self.type else pc.cast(values, self.type)

    def bounds(self, stats: Statistics) -> Bounds:
        known = stats.get(self.name)
        return Bounds.of_column(known, self.type) if known is not None else Bounds()

    def to_sql(self) -> str:
        return spell_path(self.path)

    def _own_columns(self) -> tuple[str, ...]:
        return (self.name,)


@dataclass(frozen=True)
class Literal(Expression):
    """A value written in the filter."""

    value: pa.Scalar

    @property
    def type(self) -> pa.DataType:
        return self.value.type

    @property
    def children(self) -> tuple[Expression, ...]:
        return ()

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return self.value

    def evaluate_as(self, batch: pa.RecordBatch, target: pa.DataType) -> Values:
        if target not in self._converted:
            self._converted[target] = convert(self.value, target)
        return self._converted[target]

    @cached_property
    def _converted(self) -> dict[pa.DataType, pa.Scalar]:
        """The value in each type requested so far; cached, because it is the same for every batch."""
        return {}

    def bounds(self, stats: Statistics) -> Bounds:
        return Bounds.of_literal(self.value) if not pa.types.is_nested(self.type) else Bounds()

    def to_sql(self) -> str:
        return spell_scalar(self.value)


class ArithmeticOp(StrEnum):
    """The operators between numbers; the result of `%` has the sign of the left operand."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"


@dataclass(frozen=True)
class Arithmetic(Expression):
    """An operation on two numbers. Integers are computed in 64 bits, decimals as decimals, everything else as doubles.

    A sum, difference or product of integers that overflows is an error. A division of integers drops the fraction.
    """

    op: ArithmeticOp
    left: Expression
    right: Expression
    result_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        return self.result_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        exact = pa.types.is_decimal(self.type)
        targets = (exact_type(side.type) if exact else self.type for side in self.children)
        sides = (side.evaluate_as(batch, target) for side, target in zip(self.children, targets, strict=True))
        return _compute(self.op, *sides)

    def to_sql(self) -> str:
        return f"({self.left.to_operand_sql()} {self.op} {self.right.to_operand_sql()})"


@dataclass(frozen=True)
class Minus(Expression):
    """The negative of a number; integers are computed in 64 bits."""

    operand: Expression

    @property
    def type(self) -> pa.DataType:
        return pa.int64() if pa.types.is_integer(self.operand.type) else self.operand.type

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return pc.negate_checked(self.operand.evaluate_as(batch, self.type))

    def to_sql(self) -> str:
        return f"(- {self.operand.to_operand_sql()})"


@dataclass(frozen=True)
class Cast(Expression):
    """A value cast to another type. A value that does not fit is an error, or null if `lenient` (SQL's TRY_CAST)."""

    operand: Expression
    target: pa.DataType
    lenient: bool = False

    @property
    def type(self) -> pa.DataType:
        return self.target

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        values = self.operand.evaluate(batch)
        return cast_each(values, self.type) if self.lenient else convert(values, self.type)

    def to_sql(self) -> str:
        return f"{'TRY_CAST' if self.lenient else 'CAST'}({self.operand.to_sql()} AS {spell_type(self.type)})"


@dataclass(frozen=True)
class Call(Expression):
    """A call of a function in the function table, by the function's first name."""

    function: str
    arguments: tuple[Expression, ...]
    result_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        return self.result_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        values = [argument.evaluate(batch) for argument in self.arguments]
        return FUNCTIONS[self.function].evaluate(*values)

    def to_sql(self) -> str:
        operator = FUNCTIONS[self.function].operator
        if operator:
            return f"({operator.join(argument.to_operand_sql() for argument in self.arguments)})"
        return f"{self.function}({', '.join(argument.to_sql() for argument in self.arguments)})"


def arithmetic_type(op: ArithmeticOp, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the result type for numeric operands; raises `UnsupportedFeature` for a division of decimals."""
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()
    if not (pa.types.is_decimal(left) or pa.types.is_decimal(right)):
        return pa.int64()
    if op in (ArithmeticOp.DIVIDE, ArithmeticOp.REMAINDER):
        raise UnsupportedFeature(f"operator {op} on decimals in a filter (cast them to double)")
    left, right = (pa.array([], exact_type(side)) for side in (left, right))
    return _compute(op, left, right).type


def _compute(op: ArithmeticOp, left: Values, right: Values) -> Values:
    overflows = not pa.types.is_floating(left.type)  # checked operations on doubles take three times as long
    match op:
        case ArithmeticOp.ADD:
            return (pc.add_checked if overflows else pc.add)(left, right)
        case ArithmeticOp.SUBTRACT:
            return (pc.subtract_checked if overflows else pc.subtract)(left, right)
        case ArithmeticOp.MULTIPLY:
            return (pc.multiply_checked if overflows else pc.multiply)(left, right)
        case ArithmeticOp.DIVIDE:
            return pc.divide(left, right)
        case ArithmeticOp.REMAINDER:
            return _remainder(left, right)


def _remainder(left: Values, right: Values) -> Values:
    if not pa.types.is_floating(left.type):
        if isinstance(left, pa.Array) and not left.null_count and isinstance(right, pa.Scalar) and right.is_valid:
            divisor = right.as_py()
            if divisor > 0:
                return pa.array(_remainders_of_one(left.to_numpy(), divisor))
        return pc.subtract(left, pc.multiply(right, pc.divide(left, right)))  # only -2**63 / -1 overflows
    # The formula above would round doubles; fmod is exact.
    length = max((len(side) for side in (left, right) if isinstance(side, pa.Array)), default=None)
    numbers = [_as_numpy(side) for side in (left, right)]
    with np.errstate(all="ignore"):
        result = np.fmod(*numbers)
    unknown = pc.or_(pc.is_null(left), pc.is_null(right))
    values = pa.scalar(float(result)) if length is None else pa.array(np.broadcast_to(result, length))
    return pc.if_else(unknown, pa.scalar(None, pa.float64()), values)


def _remainders_of_one(numbers: Int64Array, divisor: int) -> Int64Array:
    """Return the remainders by one positive divisor, with the dividend's sign.

    For a single divisor numpy replaces division instructions by multiplications and shifts.
    """
    has_negatives = bool(len(numbers)) and numbers.min() < 0
    given = numbers if has_negatives else numbers.view(np.uint64)  # unsigned division takes half the time
    remainders = given // given.dtype.type(divisor)
    remainders *= given.dtype.type(divisor)
    np.subtract(given, remainders, out=remainders)  # floor remainders, not negative
    found: Int64Array = remainders.view(np.int64)
    if has_negatives:
        found[(numbers < 0) & (found > 0)] -= divisor
    return found


def _as_numpy(values: Values) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    if isinstance(values, pa.Scalar):
        return np.asarray(values.as_py() if values.is_valid else np.nan, dtype=np.float64)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)

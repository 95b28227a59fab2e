"""Conditions on values: comparisons, membership in a list, and tests for null."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import field
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import scalar
from lance_ops.core.cached_property import cached_property
from lance_ops.core.predicate.tree.column_stats import Bounds, Relations, Statistics, order_key
from lance_ops.core.predicate.tree.nodes import Expression, Predicate, Values
from lance_ops.core.predicate.tree.sql_spelling import spell_scalar
from lance_ops.core.predicate.tree.truth_set import TruthSet
from lance_ops.core.predicate.types import common_type, whole_and_rest
from lance_ops.core.records import dataclass

__all__ = ["Compare", "CompareOp", "In", "IsNull"]


class CompareOp(StrEnum):
    """The comparison operators."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def relations(self) -> Relations:
        """The relations for which the comparison is true."""
        return _RELATIONS[self]

    @property
    def negated(self) -> CompareOp:
        """The comparison that is true where this one is false: the order is total, NaN included."""
        return _NEGATED[self]

    @property
    def mirrored(self) -> CompareOp:
        """The equivalent comparison with its sides exchanged."""
        return _MIRRORED[self]


_RELATIONS = {
    CompareOp.EQ: Relations.EQUAL,
    CompareOp.NE: Relations.LESS | Relations.GREATER,
    CompareOp.LT: Relations.LESS,
    CompareOp.LE: Relations.LESS | Relations.EQUAL,
    CompareOp.GT: Relations.GREATER,
    CompareOp.GE: Relations.GREATER | Relations.EQUAL,
}
_NEGATED = {op: other for op in CompareOp for other in CompareOp if _RELATIONS[op] ^ _RELATIONS[other] == Relations.ANY}
_MIRRORED = {
    CompareOp.EQ: CompareOp.EQ,
    CompareOp.NE: CompareOp.NE,
    CompareOp.LT: CompareOp.GT,
    CompareOp.LE: CompareOp.GE,
    CompareOp.GT: CompareOp.LT,
    CompareOp.GE: CompareOp.LE,
}
_FUNCTIONS = {
    CompareOp.EQ: pc.equal,
    CompareOp.NE: pc.not_equal,
    CompareOp.LT: pc.less,
    CompareOp.LE: pc.less_equal,
    CompareOp.GT: pc.greater,
    CompareOp.GE: pc.greater_equal,
}


@dataclass(frozen=True)
class Compare(Predicate):
    """A comparison of two values; unknown if either is null. `build.compare` makes their types comparable."""

    op: CompareOp
    left: Expression
    right: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        shared = common_type(self.left.type, self.right.type)
        try:
            left, right = (side.evaluate_as(batch, shared) for side in self.children)
        except pa.ArrowInvalid:
            if not (pa.types.is_timestamp(shared) or pa.types.is_duration(shared)):
                raise
            return _compare_instants(self.op, self.left.evaluate(batch), self.right.evaluate(batch), shared)
        result = _FUNCTIONS[self.op](left, right)
        return _order_nans(self.op, left, right, result) if pa.types.is_floating(shared) else result

    def possible_truths(self, stats: Statistics) -> TruthSet:
        left, right = self.left.bounds(stats), self.right.bounds(stats)
        if self.left.type != self.right.type:  # order keys of different types do not compare
            left, right = Bounds(nulls=left.nulls), Bounds(nulls=right.nulls)
        relations = left.relations_to(right)
        result = TruthSet.UNKNOWN if left.nulls or right.nulls else TruthSet.NONE
        if relations & self.op.relations:
            result |= TruthSet.TRUE
        if relations & ~self.op.relations:
            result |= TruthSet.FALSE
        return result

    def to_sql(self) -> str:
        return f"{self.left.to_operand_sql()} {self.op} {self.right.to_operand_sql()}"


def _compare_instants(op: CompareOp, left: Values, right: Values, shared: pa.DataType) -> Values:
    """Compare instants or durations that their common type does not hold, as the year 9999 in nanoseconds."""
    compare = _FUNCTIONS[op]
    left_whole, left_rest = whole_and_rest(left, right.type, shared)
    right_whole, right_rest = whole_and_rest(right, left.type, shared)
    is_same_tick = pc.equal(left_whole, right_whole)
    return pc.if_else(is_same_tick, compare(left_rest, right_rest), compare(left_whole, right_whole))


def _order_nans(op: CompareOp, left: Values, right: Values, result: Values) -> Values:
    """Correct a comparison for NaN, which in filters equals itself and is above all numbers, unlike in IEEE 754.

    The result stays null where an operand is null.
    """
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    match op:
        case CompareOp.EQ:
            return pc.or_(result, pc.and_(left_nan, right_nan))
        case CompareOp.NE:
            return pc.and_(result, pc.invert(pc.and_(left_nan, right_nan)))
        case CompareOp.LT:
            return pc.or_(result, pc.and_(pc.invert(left_nan), right_nan))
        case CompareOp.LE:
            return pc.or_(result, right_nan)
        case CompareOp.GT:
            return pc.or_(result, pc.and_(left_nan, pc.invert(right_nan)))
        case CompareOp.GE:
            return pc.or_(result, left_nan)


@dataclass(frozen=True)
class In(Predicate):
    """Whether a value is in a list of values of its type; `values` holds no null.

    `or_null` means that the list in the filter had a null: the result is then unknown, not false, for other values.
    """

    operand: Expression
    values: pa.Array = field(hash=False)
    or_null: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        values, wanted = self.operand.evaluate(batch), self.values
        if pa.types.is_floating(wanted.type):
            values, wanted = _one_form(values), _one_form(wanted)
        found = pc.is_in(values, value_set=wanted)
        unknown = pc.is_null(values)
        if self.or_null:
            unknown = pc.or_(unknown, pc.invert(found))
        return pc.if_else(unknown, scalar(None, pa.bool_()), found)

    def possible_truths(self, stats: Statistics) -> TruthSet:
        bounds = self.operand.bounds(stats)
        result = TruthSet.UNKNOWN if bounds.nulls else TruthSet.NONE
        reached = bounds.values and self._reached(bounds)
        if reached or (bounds.nans and len(self._keys) < len(self.values)):
            result |= TruthSet.TRUE
        if (bounds.values or bounds.nans) and not (reached and bounds.single):
            result |= TruthSet.UNKNOWN if self.or_null else TruthSet.FALSE
        return result

    @cached_property
    def _keys(self) -> list[Any]:
        """The order keys of the values, sorted, without NaN."""
        keys = (order_key(value) for value in self.values)
        return sorted(key for key in keys if key == key)

    def _reached(self, bounds: Bounds) -> bool:
        """Whether a value of the list lies within the bounds."""
        first = 0 if bounds.lower is None else bisect_left(self._keys, bounds.lower)
        if first == len(self._keys) or bounds.upper is None:
            return first < len(self._keys)
        least = self._keys[first]
        return bool(least < bounds.upper) or (least == bounds.upper and not bounds.upper_open)

    def to_sql(self) -> str:
        spelled = [spell_scalar(value) for value in self.values] + ["NULL"] * self.or_null
        return f"{self.operand.to_operand_sql()} IN ({', '.join(spelled)})"


@dataclass(frozen=True)
class IsNull(Predicate):
    """Whether a value is null; never unknown."""

    operand: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return pc.is_null(self.operand.evaluate(batch))

    def possible_truths(self, stats: Statistics) -> TruthSet:
        bounds = self.operand.bounds(stats)
        result = TruthSet.TRUE if bounds.nulls else TruthSet.NONE
        return result | TruthSet.FALSE if bounds.values or bounds.nans else result

    def to_sql(self) -> str:
        return f"{self.operand.to_operand_sql()} IS NULL"


def _one_form(values: Values) -> Values:
    """Give equal floats equal bits, because `pc.is_in` distinguishes 0.0 from -0.0 and one NaN from another."""
    zero, nan = scalar(0.0, values.type), scalar(float("nan"), values.type)
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, zero))

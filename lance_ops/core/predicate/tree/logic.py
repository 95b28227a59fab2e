"""AND, OR, NOT and truth values as conditions, in three-valued logic."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import scalar
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import BoolArray
from lance_ops.core.predicate.tree.column_stats import Statistics
from lance_ops.core.predicate.tree.conditions import Compare, IsNull
from lance_ops.core.predicate.tree.nodes import Expression, Predicate, Values
from lance_ops.core.predicate.tree.truth_set import TruthSet
from lance_ops.core.predicate.tree.values import Literal
from lance_ops.core.records import dataclass

__all__ = ["FALSE", "TRUE", "UNKNOWN", "And", "BooleanValue", "IsTrue", "Not", "Or", "all_of", "any_of", "negate"]


@dataclass(frozen=True)
class And(Predicate):
    """True where all parts are; there are at least two, none of them an `And`."""

    parts: tuple[Predicate, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.parts

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return reduce(pc.and_kleene, (part.evaluate(batch) for part in self.parts))

    def _true_rows(self, batch: pa.RecordBatch) -> BoolArray:
        try:
            return super()._true_rows(batch)
        except InvalidInput:
            return self._true_where_computable(batch)

    def _true_where_computable(self, batch: pa.RecordBatch) -> BoolArray:
        """Test the parts that can be computed for all rows first, and the others on the rows that are left."""
        true = np.ones(batch.num_rows, np.bool_)
        failed: list[Predicate] = []
        for part in self.parts:
            try:
                true &= part.true_mask(batch)
            except InvalidInput:
                failed.append(part)
        rows = np.flatnonzero(true)
        if len(rows) < batch.num_rows or len(failed) < len(self.parts):
            if len(rows):
                true[rows] = all_of(*failed).true_mask(batch.take(pa.array(rows)))
            return true
        if batch.num_rows == 1:
            return failed[0].true_mask(batch)  # raises
        middle = batch.num_rows // 2
        return np.concatenate([self.true_mask(half) for half in (batch.slice(0, middle), batch.slice(middle))])

    def possible_truths(self, stats: Statistics) -> TruthSet:
        return reduce(TruthSet.both, (part.possible_truths(stats) for part in self.parts))

    def to_sql(self) -> str:
        return " AND ".join(f"({part.to_sql()})" if isinstance(part, Or) else part.to_sql() for part in self.parts)


@dataclass(frozen=True)
class Or(Predicate):
    """True where any part is; there are at least two, none of them an `Or`."""

    parts: tuple[Predicate, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.parts

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return reduce(pc.or_kleene, (part.evaluate(batch) for part in self.parts))

    def _true_rows(self, batch: pa.RecordBatch) -> BoolArray:
        try:
            return super()._true_rows(batch)
        except InvalidInput:  # a part may be a conjunction, which decides for which rows an error counts
            return reduce(np.logical_or, (part.true_mask(batch) for part in self.parts))

    def possible_truths(self, stats: Statistics) -> TruthSet:
        return reduce(TruthSet.either, (part.possible_truths(stats) for part in self.parts))

    def to_sql(self) -> str:
        return " OR ".join(f"({part.to_sql()})" if isinstance(part, And) else part.to_sql() for part in self.parts)


@dataclass(frozen=True)
class Not(Predicate):
    """True where its part is false."""

    part: Predicate

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.part,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return pc.invert(self.part.evaluate(batch))

    def possible_truths(self, stats: Statistics) -> TruthSet:
        return self.part.possible_truths(stats).negated()

    def to_sql(self) -> str:
        if isinstance(self.part, IsNull):
            return f"{self.part.operand.to_operand_sql()} IS NOT NULL"
        return f"NOT ({self.part.to_sql()})"


@dataclass(frozen=True)
class IsTrue(Predicate):
    """Whether a condition is true and not false or unknown; the result is never unknown."""

    part: Predicate

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.part,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return pc.fill_null(self.part.evaluate(batch), False)

    def _true_rows(self, batch: pa.RecordBatch) -> BoolArray:
        return self.part.true_mask(batch)

    def possible_truths(self, stats: Statistics) -> TruthSet:
        return self.part.possible_truths(stats).is_true()

    def to_sql(self) -> str:
        return f"({self.part.to_sql()}) IS TRUE"


@dataclass(frozen=True)
class BooleanValue(Predicate):
    """A condition that is a boolean value: a column, a literal or a call."""

    value: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.value,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return self.value.evaluate(batch)

    def possible_truths(self, stats: Statistics) -> TruthSet:
        bounds = self.value.bounds(stats)
        result = TruthSet.UNKNOWN if bounds.nulls else TruthSet.NONE
        if bounds.values and bounds.upper is not False:
            result |= TruthSet.TRUE
        if bounds.values and bounds.lower is not True:
            result |= TruthSet.FALSE
        return result

    def to_sql(self) -> str:
        return self.value.to_sql()

    def to_operand_sql(self) -> str:
        return self.value.to_operand_sql()


# `pa.scalar` and `pa.array` import pandas if it is installed; building from buffers does not.
_TRUTHS = pa.Array.from_buffers(pa.bool_(), 3, [pa.py_buffer(bytes([0b011])), pa.py_buffer(bytes([0b001]))])
TRUE, FALSE, UNKNOWN = (BooleanValue(Literal(_TRUTHS[number])) for number in range(3))


def all_of(*parts: Predicate) -> Predicate:
    """Return the conjunction without nested `And`s, repeated parts and parts that are always true."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))]
    if FALSE in flat:
        return FALSE
    needed = tuple(dict.fromkeys(part for part in flat if part != TRUE))
    return And(needed) if len(needed) > 1 else needed[0] if needed else TRUE


def any_of(*parts: Predicate) -> Predicate:
    """Return the disjunction without nested `Or`s, repeated parts and parts that are always false."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    if TRUE in flat:
        return TRUE
    needed = tuple(dict.fromkeys(part for part in flat if part != FALSE))
    return Or(needed) if len(needed) > 1 else needed[0] if needed else FALSE


def negate(part: Predicate) -> Predicate:
    """Return the negation, pushed inward so that conjuncts and comparisons stay visible."""
    match part:
        case Not(inner):
            return inner
        case And(parts):
            return any_of(*map(negate, parts))
        case Or(parts):
            return all_of(*map(negate, parts))
        case Compare(op, left, right):
            return Compare(op.negated, left, right)
        case BooleanValue(Literal(value)):
            return BooleanValue(Literal(scalar(not value.as_py() if value.is_valid else None, pa.bool_())))
        case _:
            return Not(part)

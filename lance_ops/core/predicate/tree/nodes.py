"""The base classes of the nodes of a predicate's tree.

Nodes are frozen dataclasses of pyarrow types and scalars, so a tree can be compared, hashed and pickled for tasks. A
node's class defines how to evaluate it on a batch, how to bound its values by statistics, and how to print it as SQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import truths_of
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import BoolArray
from lance_ops.core.predicate.tree.column_stats import Bounds, Statistics
from lance_ops.core.predicate.tree.truth_set import TruthSet
from lance_ops.core.predicate.types import compute_type, convert

__all__ = ["Expression", "Predicate", "StoredExpression", "Values"]

Values: TypeAlias = Any
"""A `pa.Array` of the batch's length, or a `pa.Scalar` that stands for as many equal values."""


class Expression(ABC):
    """A value for each row."""

    @property
    @abstractmethod
    def type(self) -> pa.DataType:
        """The Arrow type of the values `evaluate` returns."""

    @property
    def stored_type(self) -> pa.DataType:
        """The type of a column that stores the values; it differs from `type` if pyarrow does not compute in it."""
        return self.type

    @property
    @abstractmethod
    def children(self) -> tuple[Expression, ...]:
        """The expressions that this one consists of."""

    @abstractmethod
    def evaluate(self, batch: pa.RecordBatch) -> Values:
        """Return the value for each row of the batch."""

    def evaluate_as(self, batch: pa.RecordBatch, target: pa.DataType) -> Values:
        """Return the values converted to a type; raises as `convert` does."""
        return convert(self.evaluate(batch), target)

    @abstractmethod
    def to_sql(self) -> str:
        """Spell this expression in the dialect `parse_filter` reads."""

    def to_operand_sql(self) -> str:
        """Spell this expression so that an operator may stand beside it."""
        return self.to_sql()

    def bounds(self, stats: Statistics) -> Bounds:
        """Return bounds on the values; by default there are none."""
        return Bounds()

    def walk(self) -> Iterator[Expression]:
        """Yield this expression and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def columns(self) -> tuple[str, ...]:
        """Return the paths of the columns that this expression reads, each once, in order of appearance."""
        found = (name for node in self.walk() for name in node._own_columns())
        return tuple(dict.fromkeys(found))

    def _own_columns(self) -> tuple[str, ...]:
        return ()


class StoredExpression(Expression):
    """A value of a type that a column can have. It is computed in a type that pyarrow computes in."""

    @property
    def type(self) -> pa.DataType:
        return compute_type(self.stored_type)

    @property
    @abstractmethod
    def stored_type(self) -> pa.DataType:
        """The type of a column that stores the values."""


class Predicate(Expression):
    """A truth value for each row: true, false, or unknown because of a null."""

    @property
    def type(self) -> pa.DataType:
        return pa.bool_()

    @abstractmethod
    def possible_truths(self, stats: Statistics) -> TruthSet:
        """Return the truth values that may occur among the rows the statistics describe."""

    def may_match(self, stats: Statistics) -> bool:
        """Whether a row that the statistics describe may match. A column without statistics may hold any value."""
        return TruthSet.TRUE in self.possible_truths(stats)

    def mask(self, batch: pa.RecordBatch | pa.Table) -> pa.BooleanArray | pa.ChunkedArray:
        """Return a truth value for each row, null for unknown; chunked for a table.

        Raises `InvalidInput` when the batch lacks a column, or when a value cannot be computed (a division by zero, a
        cast of a value that does not fit).
        """
        if isinstance(batch, pa.Table):
            return pa.chunked_array([self.mask(part) for part in batch.to_batches()], pa.bool_())
        try:
            result = self.evaluate(batch)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(f"filter {self.to_sql()} cannot be evaluated: {error}") from error
        if isinstance(result, pa.Scalar):
            return pa.repeat(result.cast(pa.bool_()), batch.num_rows)
        return result

    def true_mask(self, rows: pa.RecordBatch | pa.Table) -> BoolArray:
        """Return for each row whether the predicate is true, not false or unknown.

        Raises as `mask` does, but not for a row for which another part of a conjunction is not true: an index that
        answers that part never shows the row. So the answer and the error do not depend on the indices.
        """
        if isinstance(rows, pa.RecordBatch):
            return self._true_rows(rows)
        parts = [self._true_rows(part) for part in rows.to_batches()]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.bool_), *parts])

    def _true_rows(self, batch: pa.RecordBatch) -> BoolArray:
        return truths_of(self.mask(batch))

    def bounds(self, stats: Statistics) -> Bounds:
        truths = self.possible_truths(stats)
        both = TruthSet.TRUE | TruthSet.FALSE
        known = truths & both
        lower, upper = (None, None) if known in (both, TruthSet.NONE) else (known is TruthSet.TRUE,) * 2
        return Bounds(lower, upper, values=bool(known), nulls=TruthSet.UNKNOWN in truths, nans=False)

    def to_operand_sql(self) -> str:
        return f"({self.to_sql()})"

    def __str__(self) -> str:
        return self.to_sql()

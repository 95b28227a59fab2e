"""A condition that pyarrow evaluates, for a pyarrow expression that has no translation into the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import EXTENSION_NAME
from lance_ops.core.errors import InvalidFilter
from lance_ops.core.predicate.binding import Name, resolve
from lance_ops.core.predicate.tree import Column, Expression, Predicate, Statistics, TruthSet, Values
from lance_ops.core.records import dataclass

__all__ = ["ArrowCondition", "arrow_condition"]

_POSITION = "position of the row"


@dataclass(frozen=True)
class ArrowCondition(Predicate):
    """A pyarrow expression as a condition; conditions are compared by their serialized expressions.

    The result is true or false, never unknown, so the condition may only be a part of a conjunction.
    """

    expression: pc.Expression = field(compare=False)
    serialized: bytes = field(repr=False)
    operands: tuple[Column, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.operands

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        names = dict.fromkeys(column.path[0] for column in self.operands)
        table = pa.table({name: batch.column(name) for name in names})
        numbered = table.append_column(_POSITION, pa.array(np.arange(batch.num_rows)))
        mask = np.zeros(batch.num_rows, dtype=np.bool_)
        mask[numbered.filter(self.expression).column(_POSITION).to_numpy()] = True
        return pa.array(mask)

    def possible_truths(self, stats: Statistics) -> TruthSet:
        return TruthSet.TRUE | TruthSet.FALSE

    def to_sql(self) -> str:
        return f"pyarrow: {self.expression}"


def arrow_condition(
    expression: pc.Expression, paths: Sequence[tuple[str, ...]], schema: pa.Schema
) -> ArrowCondition | None:
    """Return the condition on columns of that schema; None if pyarrow cannot evaluate it.

    pyarrow cannot evaluate it on an extension type, whose storage differs from the values that the user sees.
    """
    try:
        columns = tuple(resolve(schema, [Name(name) for name in path]) for path in paths)
    except InvalidFilter:
        return None
    fields = [schema.field(name) for name in dict.fromkeys(column.path[0] for column in columns)]
    if not fields or any(map(_is_stored_otherwise, fields)):
        return None
    try:
        pa.schema(fields).empty_table().filter(expression)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return None
    _, (serialized,) = expression.__reduce__()
    return ArrowCondition(expression, serialized.to_pybytes(), columns)


def _is_stored_otherwise(column: pa.Field) -> bool:
    below = (column.type.field(place) for place in range(column.type.num_fields))
    named = EXTENSION_NAME.encode() in (column.metadata or {})
    return named or isinstance(column.type, pa.BaseExtensionType) or any(map(_is_stored_otherwise, below))

"""Expressions that reach into nested values: an item of each list, and a field of each struct."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.arrow import rows_at
from lance_ops.core.ndarrays import Int64Array
from lance_ops.core.predicate.tree.nodes import Expression, StoredExpression, Values
from lance_ops.core.predicate.tree.sql_spelling import spell_text
from lance_ops.core.predicate.types import computed
from lance_ops.core.records import dataclass

__all__ = ["ListElement", "StructField"]


@dataclass(frozen=True)
class ListElement(StoredExpression):
    """The item at a position of each list: 1 is the first item, -1 the last.

    The value is null for a position outside the list, for position 0, and if the list or the position is null.
    """

    lists: Expression
    position: Expression
    arrow_type: pa.DataType

    @property
    def stored_type(self) -> pa.DataType:
        return self.arrow_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.lists, self.position)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        lists, positions = (child.evaluate(batch) for child in self.children)
        constant = isinstance(lists, pa.Scalar) and isinstance(positions, pa.Scalar)
        num_rows = 1 if constant else batch.num_rows
        items = computed(_items(_as_array(lists, num_rows), _as_array(positions, num_rows)), self.type)
        return items[0] if constant else items

    def to_sql(self) -> str:
        return f"array_element({self.lists.to_sql()}, {self.position.to_sql()})"


@dataclass(frozen=True)
class StructField(StoredExpression):
    """A field of structs that are not a column themselves; the value is null where the struct is null."""

    structs: Expression
    name: str
    arrow_type: pa.DataType

    @property
    def stored_type(self) -> pa.DataType:
        return self.arrow_type

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.structs,)

    def evaluate(self, batch: pa.RecordBatch) -> Values:
        return computed(pc.struct_field(self.structs.evaluate(batch), [self.name]), self.type)

    def to_sql(self) -> str:
        return f"{self.structs.to_operand_sql()}[{spell_text(self.name)}]"


def _as_array(values: Values, num_rows: int) -> pa.Array:
    return pa.array([values.as_py()] * num_rows, values.type) if isinstance(values, pa.Scalar) else values


def _items(lists: pa.Array, positions: pa.Array) -> pa.Array:
    starts, lengths = _extents(lists)
    at = pc.fill_null(positions, 0).to_numpy().astype(np.int64)  # position 0 is outside every list
    offsets = np.where(at > 0, at - 1, lengths + at)
    inside = (at != 0) & (offsets >= 0) & (offsets < lengths)
    places = pa.array(np.where(inside, starts + offsets, 0), mask=~inside)
    return rows_at(pa.record_batch([lists.values], ["items"]), places).column(0)


def _extents(lists: pa.Array) -> tuple[Int64Array, Int64Array]:
    """Return where each list starts in `lists.values`, and its length; a null list has no items."""
    if pa.types.is_fixed_size_list(lists.type):
        size = lists.type.list_size
        starts = (np.arange(len(lists), dtype=np.int64) + lists.offset) * size
        lengths = np.full(len(lists), size, dtype=np.int64)
    else:
        bounds = lists.offsets.to_numpy().astype(np.int64)
        starts, lengths = bounds[:-1], np.diff(bounds)
    return starts, np.where(lists.is_valid().to_numpy(zero_copy_only=False), lengths, 0)

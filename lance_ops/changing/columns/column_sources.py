"""Where the values of new columns come from: each source computes them from rows of the table, batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.changing.columns.checkpoint import Checkpoint
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.arrow import rows_at
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.json import table_to_text
from lance_ops.core.predicate import Assignment
from lance_ops.core.schema import Schema

__all__ = ["CastColumns", "ColumnSource", "ComputedColumns", "FunctionColumns", "JoinedColumns", "as_table"]


class ColumnSource(ABC):
    """Values of new columns for any rows of a table. Picklable, so that tasks can carry it."""

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The columns, by path, that `compute` wants of the rows; row columns among them."""

    @abstractmethod
    def compute(self, rows: pa.Table, schema: Schema, place: str) -> pa.Table:
        """Return the new columns of these rows; `place` says which rows of which files they are.

        Raises `InvalidInput` for a value that cannot be computed, `SchemaMismatch` for what is not the columns wanted.
        """


@dataclass(frozen=True)
class ComputedColumns(ColumnSource):
    """Columns by SQL expression."""

    assignments: tuple[Assignment, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for each in self.assignments for path in each.value.columns()))

    def compute(self, rows: pa.Table, schema: Schema, place: str) -> pa.Table:
        batches = rows.to_batches()
        columns = [
            pa.chunked_array([each.evaluate(batch) for batch in batches], each.arrow_type) for each in self.assignments
        ]
        return pa.Table.from_arrays(columns, names=[each.column for each in self.assignments])


@dataclass(frozen=True)
class FunctionColumns(ColumnSource):
    """Columns that a function makes of batches of `read_columns`; it returns a batch, a table or a data frame."""

    function: Callable[[pa.RecordBatch], Any]
    read_columns: tuple[str, ...]
    checkpoint: Checkpoint | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return self.read_columns

    def compute(self, rows: pa.Table, schema: Schema, place: str) -> pa.Table:
        key = f"{place} {self.read_columns} {schema.to_arrow_storage()}"
        known = self.checkpoint.get(key) if self.checkpoint else None
        if known is not None:
            return known
        (batch,) = table_to_text(rows, place).combine_chunks().to_batches()
        made = as_table(self.function(batch))
        if made.num_rows != rows.num_rows:
            raise SchemaMismatch(f"the function returned {made.num_rows} rows for a batch of {rows.num_rows}")
        if self.checkpoint:
            self.checkpoint.put(key, made)
        return made


@dataclass(frozen=True)
class JoinedColumns(ColumnSource):
    """Columns of the row of `table` that has the same key, null where none has; of several rows the last."""

    on: str
    keys: SourceKeys = field(compare=False)
    table: pa.Table = field(compare=False)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.on,)

    def compute(self, rows: pa.Table, schema: Schema, place: str) -> pa.Table:
        places, codes = self.keys.hits([rows.column(self.on).combine_chunks()])
        taken, missing = np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_)
        taken[places], missing[places] = self.keys.last_row_of(codes), False
        return rows_at(self.table, pa.array(taken, mask=missing))


@dataclass(frozen=True)
class CastColumns(ColumnSource):
    """Columns, or fields of structs, as other types; `paths` stand in the order of the table's schema."""

    paths: tuple[str, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return self.paths

    def compute(self, rows: pa.Table, schema: Schema, place: str) -> pa.Table:
        columns = []
        wanted = schema.to_arrow_storage()
        for column, to in zip(rows.columns, wanted, strict=True):
            try:
                columns.append(pa.chunked_array([_cast(chunk, to.type) for chunk in column.chunks], to.type))
            except pa.ArrowInvalid as error:
                raise InvalidInput(f"a value of column {to.name!r} does not fit {to.type}: {error}") from error
        return pa.Table.from_arrays(columns, schema=wanted)


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast values; a struct child by child, by position."""
    if values.type == target:
        return values
    if not (pt.is_struct(values.type) and pt.is_struct(target)):
        return pc.cast(values, target)
    children = [_cast(values.field(place), target.field(place).type) for place in range(target.num_fields)]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=values.is_null())


def as_table(made: object) -> pa.Table:
    """Return what a function made as a table; raise `SchemaMismatch` for what is no table."""
    if isinstance(made, pa.Table):
        return made
    if isinstance(made, pa.RecordBatch):
        return pa.Table.from_batches([made])
    if type(made).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(made, preserve_index=False)
    raise SchemaMismatch(f"the function returned a {type(made).__name__}, not a record batch or data frame")

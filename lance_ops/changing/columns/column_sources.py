"""Column sources: each computes the values of new columns from batches of the table's rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lance_ops.changing.columns.casts import cast_column
from lance_ops.changing.columns.checkpoint import Checkpoint
from lance_ops.changing.source_keys import SourceKeys
from lance_ops.core.arrow import rows_at
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.json import table_to_text
from lance_ops.core.predicate import Assignment
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema

__all__ = ["CastColumns", "ColumnSource", "ComputedColumns", "FunctionColumns", "JoinedColumns", "as_table"]


class ColumnSource(ABC):
    """Computes new columns for any rows of a table. Picklable, so that tasks can carry it."""

    serves_parts: ClassVar[bool] = False
    """Whether several tasks may each compute a part of a fragment's rows: all of them carry the same small source."""

    @property
    @abstractmethod
    def reads(self) -> tuple[str, ...]:
        """The paths of the columns that `compute` needs; they may include row columns such as `_rowid`."""

    @property
    def description(self) -> str:
        """A text by which a later attempt knows the same values again, as far as a text can say that."""
        return f"{type(self).__name__} of {self.reads}"

    def for_fragments(self, fragment_ids: Collection[int]) -> ColumnSource:
        """Return what a task for these fragments carries: a part of the source, if only that is for their rows."""
        return self

    def opened(self) -> ColumnSource:
        """Return the source with what it reads once for all rows of a fragment, or of a piece of one."""
        return self

    @abstractmethod
    def compute(self, rows: pa.Table, schema: Schema, rows_name: str) -> pa.Table:
        """Return the new columns of these rows; `rows_name` names the rows and their files.

        Raises `InvalidInput` for a value that cannot be computed, and `SchemaMismatch` for a result of a wrong shape.
        """


@dataclass(frozen=True)
class ComputedColumns(ColumnSource):
    """Columns computed by SQL expressions."""

    serves_parts: ClassVar[bool] = True

    assignments: tuple[Assignment, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for each in self.assignments for path in each.value.columns()))

    @property
    def description(self) -> str:
        return repr([(each.column, each.value.to_sql()) for each in self.assignments])

    def compute(self, rows: pa.Table, schema: Schema, rows_name: str) -> pa.Table:
        batches = rows.to_batches()
        columns = [
            pa.chunked_array([each.evaluate(batch) for batch in batches], each.arrow_type) for each in self.assignments
        ]
        return pa.Table.from_arrays(columns, names=[each.column for each in self.assignments])


@dataclass(frozen=True)
class FunctionColumns(ColumnSource):
    """Columns computed by a function of batches of `read_columns`; it returns a batch, a table or a data frame."""

    serves_parts: ClassVar[bool] = True

    function: Callable[[pa.RecordBatch], Any]
    read_columns: tuple[str, ...]
    checkpoint: Checkpoint | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return self.read_columns

    def compute(self, rows: pa.Table, schema: Schema, rows_name: str) -> pa.Table:
        key = f"{rows_name} {self.read_columns} {schema.to_arrow_storage()}"
        stored = self.checkpoint.get(key) if self.checkpoint else None
        if stored is not None:
            return stored
        (batch,) = table_to_text(rows, rows_name).combine_chunks().to_batches()
        made = as_table(self.function(batch))
        if made.num_rows != rows.num_rows:
            raise SchemaMismatch(f"the function returned {made.num_rows} rows for a batch of {rows.num_rows}")
        if self.checkpoint:
            self.checkpoint.put(key, made)
        return made


@dataclass(frozen=True)
class JoinedColumns(ColumnSource):
    """Columns of the last row of `table` that has the same key; null where no row has it."""

    on: str
    keys: SourceKeys = field(compare=False)
    table: pa.Table = field(compare=False)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.on,)

    def compute(self, rows: pa.Table, schema: Schema, rows_name: str) -> pa.Table:
        positions, codes = self.keys.hits([rows.column(self.on).combine_chunks()])
        taken, missing = np.zeros(len(rows), np.int64), np.ones(len(rows), np.bool_)
        taken[positions], missing[positions] = self.keys.last_row_of(codes), False
        return rows_at(self.table, pa.array(taken, mask=missing))


@dataclass(frozen=True)
class CastColumns(ColumnSource):
    """Columns, or fields of structs, cast to other types; `paths` are in the order of the table's schema."""

    serves_parts: ClassVar[bool] = True

    paths: tuple[str, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return self.paths

    def compute(self, rows: pa.Table, schema: Schema, rows_name: str) -> pa.Table:
        columns = []
        wanted = schema.to_arrow_storage()
        for column, to in zip(rows.columns, wanted, strict=True):
            try:
                columns.append(pa.chunked_array([cast_column(chunk, to.type) for chunk in column.chunks], to.type))
            except pa.ArrowInvalid as error:
                raise InvalidInput(f"a value of column {to.name!r} does not fit {to.type}: {error}") from error
        return pa.Table.from_arrays(columns, schema=wanted)


def as_table(result: object) -> pa.Table:
    """Return a function's result as a table; raise `SchemaMismatch` if it cannot be one."""
    if isinstance(result, pa.Table):
        return result
    if isinstance(result, pa.RecordBatch):
        return pa.Table.from_batches([result])
    if type(result).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(result, preserve_index=False)
    raise SchemaMismatch(f"the function returned a {type(result).__name__}, not a record batch or data frame")

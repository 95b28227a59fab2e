"""Add columns: of SQL expressions, of a function that tasks call with batches of rows, or of files that name rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, TypeAlias

import pyarrow as pa

from lance_ops.changing import columns
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.verbs.contract import (
    Execution,
    Measures,
    Preview,
    Section,
    Verb,
    VerbResult,
    WhenMoved,
    reason_properties,
)
from lance_ops.verbs.imported_functions import imported_function
from lance_ops.verbs.options import Option
from lance_ops.verbs.own_measures import COLUMNS, OwnMeasure
from lance_ops.verbs.row_files import look_at_row_files
from lance_ops.verbs.rows.read_cost import bytes_of_columns
from lance_ops.verbs.sections import SAMPLE_ROWS, sample_of, sample_section, short_columns

__all__ = ["AddColumns"]

_Transforms: TypeAlias = Mapping[str, str] | list[str] | Callable[[pa.RecordBatch], Any]

_ASSUMED_WIDTH = 16
_SAMPLE = "First rows with the new columns"


@dataclass(frozen=True)
class AddColumns(Verb):
    """What the new columns are computed of. The other columns are not rewritten.

    A `function` gets record batches and returns a batch or a table of the new columns, as a `batch_udf` does. The
    process that plans, and those that run the tasks, import its module. Threads may call the function at once. Rows of
    the table that the files do not name get nulls.
    """

    name: ClassVar[str] = "add_columns"
    summary: ClassVar[str] = "Add columns of SQL expressions, of a function, or of files."
    command: ClassVar[str] = "add-columns"
    when_moved: ClassVar[WhenMoved] = WhenMoved.REPLANNED
    carries_token: ClassVar[bool] = True
    own_measures: ClassVar[tuple[OwnMeasure, ...]] = (COLUMNS,)

    values: Annotated[Mapping[str, str], Option("A SQL expression by new column, such as late: delay > 15.")] = field(
        default_factory=dict
    )
    function: Annotated[
        str | None, Option("Instead: the function of record batches to import, as package.module:name.")
    ] = None
    read_columns: Annotated[tuple[str, ...], Option("The columns that the function reads; none means all.")] = ()
    batch_size: Annotated[int | None, Option("Call the function with at most this many rows.", at_least=1)] = None
    checkpoint: Annotated[
        str | None, Option("Keep finished files under this name, so that a second attempt goes on where one stopped.")
    ] = None
    reason: Annotated[str, Option("Why the columns are added; optional. The version's transaction states it.")] = ""
    files: Annotated[
        tuple[str, ...],
        Option("Instead: raw files with values of the columns, and the column _rowaddr or _rowid of their rows."),
    ] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The files of values."""
        return self.files

    @property
    def when_moved_by_options(self) -> WhenMoved:
        """Add columns of files to the planned version: a row that came since is in no file."""
        return WhenMoved.JUDGED if self.files else self.when_moved

    @property
    def functions(self) -> tuple[str, ...]:
        """The function of the columns."""
        return () if self.function is None else (self.function,)

    def preview(self, work: Execution) -> Preview:
        """Show the columns for the first rows."""
        data, new = work.data, self._new_columns(work)
        taken = [name for name in new.schema.names if name in data.schema.names]
        if taken:
            raise InvalidInput(f"{data.uri} has column {taken[0]!r} already: name the new column otherwise")
        types = Section("New columns", ("column", "type"), tuple((each.name, str(each.type)) for each in new.schema))
        before = Measures.of(data)
        size = sum(_width(each.type) for each in new.schema) * before.rows
        num_nulls = before.rows - new.num_rows
        return Preview(
            f"add {', '.join(new.schema.names)} to {before.rows:,} rows",
            before,
            replace(before, size_bytes=before.size_bytes + size),
            reads_bytes=new.read_bytes,
            writes_bytes=size,
            sections=(types, new.sample),
            warnings=(f"{num_nulls:,} rows that the files do not name get nulls.",) if num_nulls else (),
            facts={"new_columns": ", ".join(new.schema.names)},
        )

    def execute(self, work: Execution) -> VerbResult:
        """Write a file of the new columns for each fragment, by tasks, and commit once."""
        data, before = work.data, set(work.data.schema.names)
        data.add_columns(
            self._transforms(),
            list(self.read_columns) or None,
            batch_size=self.batch_size,
            transaction_properties=reason_properties(self.reason) | work.token_properties,
            runner=work.runner,
            checkpoint=self.checkpoint,
        )
        facts = {"new_columns": ", ".join(name for name in data.schema.names if name not in before)}
        return VerbResult(facts, data.snapshot)

    def _transforms(self) -> _Transforms:
        if sum((bool(self.values), self.function is not None, bool(self.files))) != 1:
            raise InvalidInput("say what the columns are: give either values, a function, or files")
        if self.files:
            return list(self.files)
        return self.values if self.function is None else imported_function(self.function)

    def _new_columns(self, work: Execution) -> _NewColumns:
        data, transforms = work.data, self._transforms()
        if isinstance(transforms, Mapping):
            schema, source = columns.bind_computed(data.snapshot, transforms)
            sample = sample_of(data, None, _SAMPLE, transforms)
            return _NewColumns(schema, sample, data.snapshot.num_rows, bytes_of_columns(data, source.reads))
        if isinstance(transforms, list):
            found = look_at_row_files(data, work.runner, transforms, SAMPLE_ROWS)
            rows = found.first_rows(data, short_columns(data.schema, len(found.values)), found.values.names)
            return _NewColumns(found.values, sample_section(_SAMPLE, rows), found.num_rows, found.size_bytes)
        read = list(self.read_columns) or data.snapshot.schema.names
        rows = data.to_table(read, limit=SAMPLE_ROWS).combine_chunks()
        if not rows.num_rows:
            raise InvalidInput(f"{data.uri} has no row to try the function with")
        made = columns.as_table(transforms(rows.to_batches()[0]))
        sample = sample_section("New columns of the first rows", made)
        return _NewColumns(made.schema, sample, data.snapshot.num_rows, bytes_of_columns(data, read))


@dataclass(frozen=True)
class _NewColumns:
    """The columns, some of their values, the number of rows that get values, and about how many bytes are read."""

    schema: pa.Schema
    sample: Section
    num_rows: int
    read_bytes: int


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a value; of a value of changing length, a guess."""
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return _ASSUMED_WIDTH

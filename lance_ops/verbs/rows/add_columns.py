"""Add columns: of SQL expressions, or of a function that tasks call with batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar

import pyarrow as pa

from lance_ops.api import LanceDataset
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
from lance_ops.verbs.rows.sections import SAMPLE_ROWS, sample_of, sample_section

__all__ = ["AddColumns"]

_ASSUMED_WIDTH = 16


@dataclass(frozen=True)
class AddColumns(Verb):
    """What the new columns are computed of. The other columns are not rewritten.

    A `function` gets record batches and returns a batch or a table of the new columns, as a `batch_udf` does. The
    process that plans, and those that run the tasks, import its module. Threads may call the function at once.
    """

    name: ClassVar[str] = "add_columns"
    summary: ClassVar[str] = "Add columns of SQL expressions, or of a function."
    command: ClassVar[str] = "add-columns"
    when_moved: ClassVar[WhenMoved] = WhenMoved.REPLANNED

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

    @property
    def functions(self) -> tuple[str, ...]:
        """The function of the columns."""
        return () if self.function is None else (self.function,)

    def preview(self, work: Execution) -> Preview:
        """Compute the columns for the first rows."""
        data = work.data
        transforms = self._transforms()
        if isinstance(transforms, Mapping):
            added, _ = columns.bind_computed(data.snapshot, transforms)
            sample = sample_of(data, None, "First rows with the new columns", transforms)
        else:
            made = self._called(data, transforms)
            added = made.schema
            sample = sample_section("New columns of the first rows", made)
        taken = [name for name in added.names if name in data.schema.names]
        if taken:
            raise InvalidInput(f"{data.uri} has column {taken[0]!r} already: name the new column otherwise")
        types = Section("New columns", ("column", "type"), tuple((each.name, str(each.type)) for each in added))
        before = Measures.of(data)
        size = sum(_width(each.type) for each in added) * before.rows
        return Preview(
            f"add {', '.join(added.names)} to {before.rows:,} rows",
            before,
            replace(before, size_bytes=before.size_bytes + size),
            writes_bytes=size,
            sections=(types, sample),
            facts={"new_columns": ", ".join(added.names)},
        )

    def execute(self, work: Execution) -> VerbResult:
        """Write a file of the new columns for each fragment, by tasks, and commit once."""
        data, before = work.data, set(work.data.schema.names)
        data.add_columns(
            self._transforms(),
            list(self.read_columns) or None,
            batch_size=self.batch_size,
            transaction_properties=reason_properties(self.reason),
            runner=work.runner,
            checkpoint=self.checkpoint,
        )
        facts = {"new_columns": ", ".join(name for name in data.schema.names if name not in before)}
        return VerbResult(facts, data.snapshot)

    def _transforms(self) -> Mapping[str, str] | Callable[[pa.RecordBatch], Any]:
        if bool(self.values) == (self.function is not None):
            raise InvalidInput("say what the columns are: give either values, or a function")
        return self.values if self.function is None else imported_function(self.function)

    def _called(self, data: LanceDataset, function: Callable[[pa.RecordBatch], Any]) -> pa.Table:
        rows = data.to_table(list(self.read_columns) or None, limit=SAMPLE_ROWS).combine_chunks()
        if not rows.num_rows:
            raise InvalidInput(f"{data.uri} has no row to try the function with")
        return columns.as_table(function(rows.to_batches()[0]))


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a value; of a value of changing length, a guess."""
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return _ASSUMED_WIDTH

"""Delete all rows of each key but one."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Annotated, ClassVar, Literal

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.api import LanceDataset
from lance_ops.changing import DuplicateKey
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
from lance_ops.verbs.options import Option
from lance_ops.verbs.rows.checked_attempts import change_rows
from lance_ops.verbs.rows.read_cost import bytes_of_columns
from lance_ops.verbs.sections import SAMPLE_ROWS, sample_section, sample_title, short_columns

__all__ = ["DeleteDuplicates"]

_MOST_EXAMPLES = 10


@dataclass(frozen=True)
class DeleteDuplicates(Verb):
    """The columns of the key, and which row of each key stays, in the order of a scan.

    A stored plan is refused when the table has newer versions: one of them may have deleted the row that was to stay.
    """

    name: ClassVar[str] = "delete_duplicates"
    summary: ClassVar[str] = "Delete all rows of each key but one."
    command: ClassVar[str] = "duplicates --keep first"
    when_moved: ClassVar[WhenMoved] = WhenMoved.REFUSED
    carries_token: ClassVar[bool] = True

    on: Annotated[tuple[str, ...], Option("Required. The columns of the key.")] = ()
    keep: Annotated[Literal["first", "last"], Option("Which row of each key stays, in the order of a scan.")] = "first"
    reason: Annotated[str, Option("Why the rows go; optional. The version's transaction states it.")] = ""
    at_most_rows: Annotated[int | None, Option("Refuse when more rows would go.", at_least=0)] = None

    def preview(self, work: Execution) -> Preview:
        """Count the keys with several rows, and show the most frequent."""
        data = work.data
        found = data.duplicates(self.on, examples=_MOST_EXAMPLES, runner=work.runner)
        num_rows = found.num_surplus_rows
        self._check_number(num_rows)
        before = Measures.of(data)
        after = replace(before, rows=before.rows - num_rows, deleted_rows=before.deleted_rows + num_rows)
        lines = tuple((*map(str, each.values), f"{each.num_rows:,}") for each in found.examples)
        return Preview(
            f"delete {num_rows:,} of {before.rows:,} rows: {found.num_keys:,} keys have several",
            before,
            after,
            reads_bytes=bytes_of_columns(data, self.on),
            sections=(
                Section("The most frequent keys", (*self.on, "rows"), lines),
                *self._sample(data, found.examples[0]),
            )
            if lines
            else (),
            warnings=("Older versions keep these rows until clean-up.",) if num_rows else (),
            facts={"matching_rows": num_rows, "repeated_keys": found.num_keys},
            does_nothing=num_rows == 0,
        )

    def execute(self, work: Execution) -> VerbResult:
        """Delete them, as one commit."""
        properties = reason_properties(self.reason) | work.token_properties

        def change(data: LanceDataset, retries: int) -> VerbResult:
            result = data.delete_duplicates(
                self.on, self.keep, conflict_retries=retries, transaction_properties=properties, runner=work.runner
            )
            num_rows = result["num_deleted_rows"]
            return VerbResult({"matching_rows": num_rows}, data.snapshot if num_rows else None)

        def check(data: LanceDataset) -> None:
            self._check_number(data.duplicates(self.on, examples=0, runner=work.runner).num_surplus_rows)

        return change_rows(work, change, None if self.at_most_rows is None else check)

    def _sample(self, data: LanceDataset, key: DuplicateKey) -> list[Section]:
        """Show the first rows of a key, and which of them stays; nothing for a key of fields in structs."""
        if any(name not in data.schema.names for name in self.on):
            return []
        equal = (pc.field(name) == value for name, value in zip(self.on, key.values, strict=True))
        columns = short_columns(data.schema, 1, self.on)
        rows = data.to_table(columns, filter=reduce(and_, equal), limit=SAMPLE_ROWS)
        kept = 0 if self.keep == "first" else key.num_rows - 1
        fates = ["stays" if place == kept else "goes" for place in range(rows.num_rows)]
        shown = rows.append_column("what happens", pa.array(fates, pa.string()))
        return [sample_section(sample_title("Rows of the most frequent key", key.num_rows), shown)]

    def _check_number(self, num_rows: int) -> None:
        if self.at_most_rows is not None and num_rows > self.at_most_rows:
            raise InvalidInput(
                f"{num_rows:,} rows would go and at_most_rows is {self.at_most_rows:,}: nothing was deleted"
            )

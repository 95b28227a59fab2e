"""Set columns of rows to values of SQL expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, ClassVar

from lance_ops import changing
from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.runners import Runner
from lance_ops.verbs.contract import Execution, Measures, Preview, Verb, VerbResult, WhenMoved, reason_properties
from lance_ops.verbs.options import Option
from lance_ops.verbs.rows.checked_attempts import change_rows
from lance_ops.verbs.rows.read_cost import bytes_of_predicate
from lance_ops.verbs.rows.sections import sample_of
from lance_ops.writing import MAX_ROWS_PER_FILE

__all__ = ["Update"]


@dataclass(frozen=True)
class Update(Verb):
    """Which rows to update, and their new values over the old ones."""

    name: ClassVar[str] = "update"
    summary: ClassVar[str] = "Set columns of rows to values of SQL expressions."
    command: ClassVar[str] = "update"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED

    values: Annotated[Mapping[str, str], Option("A SQL expression by column, such as delay: delay / 60.")] = field(
        default_factory=dict
    )
    predicate: Annotated[str | None, Option("A SQL condition; without one, all rows are updated.")] = None
    reason: Annotated[str, Option("Why the rows change; optional. The version's transaction states it.")] = ""
    at_most_rows: Annotated[int | None, Option("Refuse when more rows match.", at_least=0)] = None

    def preview(self, work: Execution) -> Preview:
        """Count the rows, and show some of them with their new values."""
        data = work.data
        changing.bind_updates(data.snapshot, self.values)
        num_rows = self._count(data, work.runner)
        values = {f"{column} (new)": value for column, value in self.values.items()}
        before = Measures.of(data)
        rewritten = before.size_bytes * num_rows // max(before.rows + before.deleted_rows, 1)
        return Preview(
            f"update {', '.join(self.values)} of {num_rows:,} of {before.rows:,} rows",
            before,
            replace(
                before,
                deleted_rows=before.deleted_rows + num_rows,
                fragments=before.fragments + -(-num_rows // MAX_ROWS_PER_FILE),
                size_bytes=before.size_bytes + rewritten,
            ),
            reads_bytes=rewritten + bytes_of_predicate(data, self.predicate),
            writes_bytes=rewritten,
            facts={"matching_rows": num_rows},
            sections=(sample_of(data, self.predicate, "Rows that would change", values),) if num_rows else (),
            does_nothing=num_rows == 0,
        )

    def execute(self, work: Execution) -> VerbResult:
        """Update the rows that match in the opened version, as one commit."""

        def change(data: LanceDataset, retries: int) -> VerbResult:
            properties = reason_properties(self.reason)
            result = data.update(
                self.values, self.predicate, retries, transaction_properties=properties, runner=work.runner
            )
            num_rows = result["num_rows_updated"]
            return VerbResult({"matching_rows": num_rows}, data.snapshot if num_rows else None)

        def check(data: LanceDataset) -> None:
            self._count(data, work.runner)

        return change_rows(work, change, None if self.at_most_rows is None else check)

    def _count(self, data: LanceDataset, runner: Runner) -> int:
        num_rows = data.count_rows(self.predicate, runner=runner)
        if self.at_most_rows is not None and num_rows > self.at_most_rows:
            raise InvalidInput(
                f"{num_rows:,} rows match and at_most_rows is {self.at_most_rows:,}: nothing was updated"
            )
        return num_rows

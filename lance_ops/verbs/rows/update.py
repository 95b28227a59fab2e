"""Set columns of rows to values of SQL expressions, or of files that name the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, ClassVar

from lance_ops import changing
from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.runners import Runner
from lance_ops.snapshot import projected_sizes
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
from lance_ops.verbs.row_files import look_at_row_files
from lance_ops.verbs.rows.checked_attempts import change_rows
from lance_ops.verbs.rows.read_cost import bytes_of_predicate
from lance_ops.verbs.sections import MOST_PAIRS, SAMPLE_ROWS, sample_of, sample_section, sample_title, short_columns
from lance_ops.writing import MAX_ROWS_PER_FILE

__all__ = ["Update"]

_TITLE = "Rows that would change"


@dataclass(frozen=True)
class Update(Verb):
    """Which rows to update, and their new values: of SQL over the old ones, or of the files that name the rows.

    Values of `files` replace whole columns' values in place: rows keep their addresses, and other columns their files.
    """

    name: ClassVar[str] = "update"
    summary: ClassVar[str] = "Set columns of rows to values of SQL expressions, or of files."
    command: ClassVar[str] = "update"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED
    carries_token: ClassVar[bool] = True

    values: Annotated[Mapping[str, str], Option("A SQL expression by column, such as delay: delay / 60.")] = field(
        default_factory=dict
    )
    predicate: Annotated[str | None, Option("A SQL condition; without one, all rows are updated.")] = None
    reason: Annotated[str, Option("Why the rows change; optional. The version's transaction states it.")] = ""
    at_most_rows: Annotated[int | None, Option("Refuse when more rows match.", at_least=0)] = None
    files: Annotated[
        tuple[str, ...],
        Option("Instead of values: raw files with new values, and the column _rowaddr or _rowid of their rows."),
    ] = ()
    checkpoint: Annotated[
        str | None,
        Option("With files: keep finished files under this name, so that a second attempt goes on where one stopped."),
    ] = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The files of values."""
        return self.files

    def preview(self, work: Execution) -> Preview:
        """Count the rows, and show some of them with their new values."""
        self._check()
        if self.files:
            return self._preview_of_files(work)
        data = work.data
        changing.bind_updates(data.snapshot, self.values)
        num_rows = self._count(data, work.runner)
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
            sections=(self._sample(data, num_rows),) if num_rows else (),
            does_nothing=num_rows == 0,
        )

    def execute(self, work: Execution) -> VerbResult:
        """Update the rows of the opened version, as one commit."""
        self._check()
        properties = reason_properties(self.reason) | work.token_properties

        def change(data: LanceDataset, retries: int) -> VerbResult:
            if self.files:
                done = data.update_columns(
                    list(self.files),
                    conflict_retries=retries,
                    transaction_properties=properties,
                    runner=work.runner,
                    checkpoint=self.checkpoint,
                )
                num_rows = done["num_rows_updated"]
            else:
                num_rows = data.update(
                    self.values, self.predicate, retries, transaction_properties=properties, runner=work.runner
                )["num_rows_updated"]
            return VerbResult({"matching_rows": num_rows}, data.snapshot if num_rows else None)

        def check(data: LanceDataset) -> None:
            self._count(data, work.runner)

        return change_rows(work, change, None if self.at_most_rows is None else check)

    def _preview_of_files(self, work: Execution) -> Preview:
        data = work.data
        found = look_at_row_files(data, work.runner, self.files, SAMPLE_ROWS)
        names = found.values.names
        lacking = next((name for name in names if name not in data.schema.names), None)
        if lacking is not None:
            raise InvalidInput(f"{data.uri} has no column {lacking!r}, which the files have: leave it out, or add it")
        before, fragments = Measures.of(data), found.fragments(data)
        schema = data.snapshot.schema.project(names)
        rewritten = sum(projected_sizes(data.snapshot, fragments, schema).values()) if fragments else 0
        num_rows = found.num_rows
        shown = names[:MOST_PAIRS]
        rows = found.first_rows(data, short_columns(data.schema, len(shown), shown), shown)
        return Preview(
            f"update {', '.join(names)} of {num_rows:,} of {before.rows:,} rows, in {len(fragments):,} fragments",
            before,
            replace(before, size_bytes=before.size_bytes + rewritten),
            reads_bytes=found.size_bytes + rewritten,
            writes_bytes=found.size_bytes + rewritten,
            facts={"matching_rows": num_rows},
            sections=(sample_section(sample_title(_TITLE, num_rows), rows),) if num_rows else (),
            does_nothing=num_rows == 0,
        )

    def _sample(self, data: LanceDataset, num_rows: int) -> Section:
        """Return the first rows, with new values beside the old ones."""
        shown = list(self.values)[:MOST_PAIRS]
        values = {f"{column} (new)": self.values[column] for column in shown}
        return sample_of(data, self.predicate, sample_title(_TITLE, num_rows), values, wanted=shown)

    def _check(self) -> None:
        if bool(self.values) == bool(self.files):
            raise InvalidInput("say what the new values are: give either values, or files")
        if self.files and (self.predicate is not None or self.at_most_rows is not None):
            raise InvalidInput("predicate and at_most_rows belong to values: files name the rows themselves")
        if self.checkpoint is not None and not self.files:
            raise InvalidInput("checkpoint belongs to files: an update of expressions has none")

    def _count(self, data: LanceDataset, runner: Runner) -> int:
        num_rows = data.count_rows(self.predicate, runner=runner)
        if self.at_most_rows is not None and num_rows > self.at_most_rows:
            raise InvalidInput(
                f"{num_rows:,} rows match and at_most_rows is {self.at_most_rows:,}: nothing was updated"
            )
        return num_rows

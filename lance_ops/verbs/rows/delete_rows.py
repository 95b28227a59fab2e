"""Delete rows by predicate, or by the keys of a file or of another dataset, for a stated reason."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar

from lance_ops.api import LanceDataset
from lance_ops.changing.merge_insert.by_tasks import SourceRows
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.reading import bind_filter
from lance_ops.verbs.contract import (
    Execution,
    Measures,
    Preview,
    Verb,
    VerbResult,
    WhenMoved,
    required_reason_properties,
)
from lance_ops.verbs.options import Option
from lance_ops.verbs.rows.by_keys import match_keys, staged_once
from lance_ops.verbs.rows.checked_attempts import change_rows
from lance_ops.verbs.rows.read_cost import bytes_of_columns, bytes_of_predicate
from lance_ops.verbs.sections import sample_of, sample_title

__all__ = ["DeleteRows"]

_TITLE = "Rows that would go"


@dataclass(frozen=True)
class DeleteRows(Verb):
    """Which rows to delete, and why: those that match `predicate`, or whose columns `on` have a key of `key_files`.

    `key_files` are paths of raw files, or of one dataset. Nothing is deleted if more than `at_most_rows` match.
    """

    name: ClassVar[str] = "delete_rows"
    summary: ClassVar[str] = "Delete rows by predicate, or by keys."
    command: ClassVar[str] = "delete"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED
    carries_token: ClassVar[bool] = True

    predicate: Annotated[str | None, Option("A SQL condition, such as tailnum = 'N725MQ'.")] = None
    reason: Annotated[str, Option("Required. Why the rows go; the version's transaction states it.")] = ""
    key_files: Annotated[
        tuple[str, ...], Option("Instead: raw files, or one dataset (.lance), that hold the keys of the rows.")
    ] = ()
    on: Annotated[tuple[str, ...], Option("The columns of the key, in both.")] = ()
    at_most_rows: Annotated[int | None, Option("Refuse when more rows match.", at_least=0)] = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The files of keys."""
        return self.key_files

    def preview(self, work: Execution) -> Preview:
        """Count the rows and show some of them."""
        data = work.data
        self._check()
        if self.predicate is not None:
            num_rows = data.count_rows(self.predicate, runner=work.runner)
            wanted = bind_filter(data.snapshot, self.predicate).columns()
            sample = [sample_of(data, self.predicate, sample_title(_TITLE, num_rows), wanted=wanted)]
        else:
            found = match_keys(data, work.runner, self.key_files, self.on).matched
            num_rows, sample = found.count, found.sections(data, _TITLE, self.on)
        self._check_number(num_rows)
        before = Measures.of(data)
        after = replace(before, rows=before.rows - num_rows, deleted_rows=before.deleted_rows + num_rows)
        return Preview(
            f"delete {num_rows:,} of {before.rows:,} rows",
            before,
            after,
            reads_bytes=bytes_of_predicate(data, self.predicate) or bytes_of_columns(data, self.on),
            facts={"matching_rows": num_rows},
            sections=tuple(sample) if num_rows else (),
            warnings=("Older versions keep these rows until clean-up; `erase` removes them from there, too.",),
            does_nothing=num_rows == 0,
        )

    def execute(self, work: Execution) -> VerbResult:
        """Delete the rows that match in the opened version, as one commit."""
        self._check()
        if self.at_most_rows is None:
            return change_rows(work, partial(self._delete, work, None), None)
        keys = (
            staged_once(work.data, work.runner, self.key_files, self.on, self.on) if self.key_files else nullcontext()
        )
        with keys as staged:

            def check(data: LanceDataset) -> None:
                if self.predicate is not None:
                    self._check_number(data.count_rows(self.predicate, runner=work.runner))
                else:
                    found = match_keys(data, work.runner, self.key_files, self.on, staged=staged)
                    self._check_number(found.matched.count)

            return change_rows(work, partial(self._delete, work, staged), check)

    def _delete(self, work: Execution, staged: SourceRows | None, data: LanceDataset, retries: int) -> VerbResult:
        options: dict[str, Any] = {
            "conflict_retries": retries,
            "transaction_properties": self._check() | work.token_properties,
            "runner": work.runner,
        }
        if self.predicate is not None:
            result = data.delete(self.predicate, **options)
        else:
            keys = list(self.key_files) if staged is None else LanceDataset.of(staged.version.open())
            result = data.delete_by_keys(keys, self.on, **options)
        num_rows = result["num_deleted_rows"]
        return VerbResult({"matching_rows": num_rows}, data.snapshot if num_rows else None)

    def _check(self) -> dict[str, str]:
        if (self.predicate is None) == (not self.key_files):
            raise InvalidInput("say which rows to delete: give either predicate, or key_files with on")
        if self.predicate is not None and not self.predicate.strip():
            raise InvalidInput("predicate is empty: name the rows to delete; 'true' stands for all of them")
        if bool(self.key_files) != bool(self.on):
            raise InvalidInput("key_files and on belong together: files, and the columns of the key in both")
        return required_reason_properties(self.reason, "why the rows go")

    def _check_number(self, num_rows: int) -> None:
        if self.at_most_rows is not None and num_rows > self.at_most_rows:
            raise InvalidInput(
                f"{num_rows:,} rows match and at_most_rows is {self.at_most_rows:,}: nothing was deleted"
            )

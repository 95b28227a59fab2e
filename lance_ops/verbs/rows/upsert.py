"""Bring the rows of raw files or of a dataset into a table by key: update, insert and delete in one commit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar, Literal

from lance_ops.api import LanceDataset, MergeInsertBuilder
from lance_ops.changing import merge_insert
from lance_ops.changing.merge_insert.by_tasks import SourceRows
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.runners import Runner
from lance_ops.verbs.contract import (
    Execution,
    Measures,
    Preview,
    Verb,
    VerbResult,
    WhenMoved,
    reason_properties,
)
from lance_ops.verbs.options import Option
from lance_ops.verbs.rows.by_keys import MatchedKeys, counts_here, match_keys, read_keys, staged_once
from lance_ops.verbs.rows.checked_attempts import change_rows
from lance_ops.verbs.rows.read_cost import bytes_of_columns
from lance_ops.verbs.rows.same_rows import have_same_rows, have_same_rows_by_tasks
from lance_ops.verbs.sections import sample_section
from lance_ops.verbs.sources import source_bytes
from lance_ops.writing import MAX_ROWS_PER_FILE

__all__ = ["Upsert"]

_MATCHED = {"update": "would change", "delete": "would go", "keep": "stay", "fail": "are not allowed"}
"""What happens to rows that match, as a preview says it."""


@dataclass(frozen=True)
class Upsert(Verb):
    """Which rows come in, by which key, and what becomes of rows that match and of rows that do not.

    A row of the table and a row of the source match if their keys are equal; a key with a null in it matches nothing.
    """

    name: ClassVar[str] = "upsert"
    summary: ClassVar[str] = "Bring rows of files or of a dataset in by key: update, insert, delete."
    command: ClassVar[str] = "merge"
    when_moved: ClassVar[WhenMoved] = WhenMoved.COMPARED
    carries_token: ClassVar[bool] = True

    files: Annotated[tuple[str, ...], Option("Raw files, or one dataset (.lance), that hold the rows.")] = ()
    on: Annotated[tuple[str, ...], Option("The columns of the key, in both; by default the table's primary key.")] = ()
    matched: Annotated[
        Literal["update", "delete", "keep", "fail"], Option("What happens to rows of the table that match.")
    ] = "update"
    condition: Annotated[str | None, Option("Update only where it is true, such as source.v > target.v.")] = None
    insert: Annotated[bool, Option("Insert the rows that match nothing.")] = True
    delete_unmatched: Annotated[
        str | None, Option("Delete rows that no source row matches and for which this SQL is true; 'true' means all.")
    ] = None
    use_index: Annotated[bool, Option("Let an index on the key find the rows.")] = True
    write_mode: Annotated[
        Literal["auto", "rewrite_rows", "rewrite_columns"],
        Option("Write updated rows anew, or only the source's columns of their fragments."),
    ] = "auto"
    reason: Annotated[str, Option("Why the rows change; optional. The version's transaction states it.")] = ""
    at_most_rows: Annotated[
        int | None, Option("Refuse when more rows of the table match or are deleted.", at_least=0)
    ] = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The files or the dataset that come in."""
        return self.files

    def preview(self, work: Execution) -> Preview:
        """Join the keys, count the rows of each kind, and show some of them."""
        data = work.data
        on = self._on(data)
        updates = self.matched == "update"
        found = match_keys(data, work.runner, self.files, on, self.delete_unmatched, shows_source=True, updates=updates)
        coming = found.coming
        self._check_number(found)
        num_updated = found.matched.count if updates else 0
        num_deleted = found.unmatched.count + (found.matched.count if self.matched == "delete" else 0)
        num_inserted = coming.num_new if self.insert else 0
        warnings = []
        if self.matched == "fail" and found.matched.count:
            warnings.append(f"It would be refused: {found.matched.count:,} rows match.")
        if self.condition is not None and num_updated:
            warnings.append(f"Of the {num_updated:,} rows that match, only those with {self.condition} are updated.")
        if self.delete_unmatched is not None:
            warnings.append(f"Rows that nothing matches are deleted: {found.unmatched.count:,}.")
        before, source_size = Measures.of(data), sum(source_bytes(data, file) for file in self.files)
        rewritten = before.size_bytes * num_updated // max(before.rows + before.deleted_rows, 1)
        incoming = source_size * num_inserted // max(coming.count, 1)
        after = replace(
            before,
            rows=before.rows + num_inserted - num_deleted,
            deleted_rows=before.deleted_rows + num_updated + num_deleted,
            fragments=before.fragments + -(-(num_inserted + num_updated) // MAX_ROWS_PER_FILE),
            size_bytes=before.size_bytes + rewritten + incoming,
        )
        return Preview(
            f"insert {num_inserted:,}, update {num_updated:,} and delete {num_deleted:,} rows",
            before,
            after,
            reads_bytes=source_size + rewritten + bytes_of_columns(data, on),
            writes_bytes=rewritten + incoming,
            sections=(
                sample_section("Rows that come in", coming.first),
                *found.matched.sections(data, f"Rows that match, which {_MATCHED[self.matched]}", on),
                *([sample_section("The rows of the source for them", coming.replacing)] if num_updated else []),
                *found.unmatched.sections(data, "Rows that nothing matches, which would go", on),
            ),
            warnings=tuple(warnings),
            facts={"source_rows": coming.count, "matching_rows": found.matched.count},
            does_nothing=not (num_inserted or num_updated or num_deleted),
        )

    def affects_same_rows(self, planned: LanceDataset, newest: LanceDataset, runner: Runner) -> bool:
        """Return whether both versions have the same rows with the keys of the source."""
        on = self._on(planned)
        if counts_here(planned, runner, self.files, on):
            return have_same_rows(planned, newest, read_keys(planned, self.files, on), self.delete_unmatched)
        return have_same_rows_by_tasks(planned, newest, self.files, on, runner, self.delete_unmatched)

    def execute(self, work: Execution) -> VerbResult:
        """Merge, as one commit."""
        on = self._on(work.data)
        if self.at_most_rows is None:
            return change_rows(work, partial(self._merge, work, on, None), None)
        with staged_once(work.data, work.runner, self.files, on) as staged:

            def check(data: LanceDataset) -> None:
                where = self.delete_unmatched
                self._check_number(match_keys(data, work.runner, self.files, on, where, staged=staged))

            return change_rows(work, partial(self._merge, work, on, staged), check)

    def _merge(
        self, work: Execution, on: tuple[str, ...], staged: SourceRows | None, data: LanceDataset, retries: int
    ) -> VerbResult:
        builder = self._builder(data, on).conflict_retries(retries)
        properties = reason_properties(self.reason) | work.token_properties
        source = list(self.files) if staged is None else LanceDataset.of(staged.version.open())
        result = builder.execute(source, transaction_properties=properties, runner=work.runner)
        facts = {name: count for name, count in result.items() if isinstance(count, int)}
        return VerbResult(facts, data.snapshot if any(facts.values()) else None)

    def _builder(self, data: LanceDataset, on: tuple[str, ...]) -> MergeInsertBuilder:
        builder = data.merge_insert(on).use_index(self.use_index).write_mode(self.write_mode)
        match self.matched:
            case "update":
                builder.when_matched_update_all(self.condition)
            case "delete":
                builder.when_matched_delete()
            case "fail":
                builder.when_matched_fail()
        if self.insert:
            builder.when_not_matched_insert_all()
        if self.delete_unmatched is not None:
            builder.when_not_matched_by_source_delete(self.delete_unmatched if self._is_partial else None)
        return builder

    @property
    def _is_partial(self) -> bool:
        return self.delete_unmatched is not None and self.delete_unmatched.strip().lower() != "true"

    def _on(self, data: LanceDataset) -> tuple[str, ...]:
        if not self.files:
            raise InvalidInput("files is empty: name the raw files or the dataset whose rows come in")
        if self.condition is not None and self.matched != "update":
            raise InvalidInput(f"condition belongs to matched: update, not to {self.matched}")
        on = self.on or merge_insert.primary_key(data.snapshot)
        if not on:
            raise InvalidInput(f"{data.uri} declares no primary key: name the columns of the key in on")
        return on

    def _check_number(self, found: MatchedKeys) -> None:
        """Refuse too many rows that match, whatever becomes of them, or that `delete_unmatched` deletes."""
        num_rows = found.matched.count + found.unmatched.count
        if self.at_most_rows is not None and num_rows > self.at_most_rows:
            what = "match" if self.delete_unmatched is None else "match or are deleted by delete_unmatched"
            raise InvalidInput(
                f"{num_rows:,} rows {what} and at_most_rows is {self.at_most_rows:,}: nothing was merged"
            )

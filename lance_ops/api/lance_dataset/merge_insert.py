"""`MergeInsertBuilder`: build a merge by key clause by clause, under the reference's names.

A source row is matched if the table has a row with its key. The last `when_matched_…` clause decides what happens to
the table's row. Null keys match nothing. If two source rows match one row that the merge would update or delete, the
merge is refused. Source rows without a match are all inserted, duplicates too.

If the key is the table's declared primary key (metadata `lance-schema:unenforced-primary-key` = `true` of its fields,
which are text, binary, or integers of 32 or 64 bits), a merge begins again if another writer may have added a key that
it inserts. With any other key, two merges at the same time may both insert it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from time import perf_counter
from typing import Any, Self, TypedDict

import pyarrow as pa

from lance_ops import refs, writing
from lance_ops.api import transactions as public
from lance_ops.api.argument_checks import check_public_methods
from lance_ops.api.arrow_input import reader_of
from lance_ops.api.merge_source import check_keys_fit_frames, merge_source
from lance_ops.api.version_handle import Handle
from lance_ops.changing import merge_insert
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.core.errors import InvalidInput
from lance_ops.reading import UserFilter
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot

__all__ = ["ExecuteResult", "MergeInsertBuilder"]

_WRITE_MODES = ("auto", "rewrite_rows", "rewrite_columns")


class ExecuteResult(TypedDict):
    """The result of a merge."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


@check_public_methods
class MergeInsertBuilder:
    """Collects the clauses of a merge; `execute` commits it and moves the dataset's handle."""

    def __init__(self, dataset: Handle, on: str | Iterable[str] | None = None) -> None:
        self._dataset = dataset
        self._request = merge_insert.MergeRequest((on,) if isinstance(on, str) else tuple(on or ()))
        self._retries = 10
        self._timeout = timedelta(seconds=30)

    def when_matched_update_all(self, condition: str | None = None) -> Self:
        """Give matched rows the source's values, where `condition` (on `source.…` and `target.…`) is true."""
        return self._with(when_matched=merge_insert.WhenMatched.UPDATE, update_condition=condition)

    def when_matched_delete(self) -> Self:
        """Delete matched rows."""
        return self._with(when_matched=merge_insert.WhenMatched.DELETE, update_condition=None)

    def when_matched_fail(self) -> Self:
        """Refuse the whole merge if any row matches."""
        return self._with(when_matched=merge_insert.WhenMatched.FAIL, update_condition=None)

    def when_not_matched_insert_all(self) -> Self:
        """Insert source rows that match nothing."""
        return self._with(inserts=True)

    def when_not_matched_by_source_delete(self, expr: UserFilter | None = None) -> Self:
        """Delete the rows of the table that no source row matches, or only those for which `expr` is true."""
        return self._with(deletes_unmatched=True, delete_condition=expr)

    def conflict_retries(self, max_retries: int) -> Self:
        """Set how often the merge is retried after a conflict."""
        self._retries = max_retries
        return self

    def retry_timeout(self, timeout: timedelta) -> Self:
        """Set the time after which no further attempt begins."""
        self._timeout = timeout
        return self

    def use_index(self, use_index: bool) -> Self:
        """Set whether the merge may use an index on the key; without an index it reads every row's key."""
        return self._with(use_index=use_index)

    def data_storage_version(self, version: str) -> Self:
        """Set the file version of the files written."""
        return self._with(file_version=version)

    def write_mode(self, mode: str) -> Self:
        """Set how updated rows are written: as whole rows in new fragments (`auto`, `rewrite_rows`), or in place.

        `rewrite_columns` writes only the source's columns, for every row of each fragment that has a matched row. It
        needs a source that lacks some columns, and a merge that only updates.
        """
        if mode not in _WRITE_MODES:
            raise InvalidInput(f"write mode {mode!r} is none of {', '.join(_WRITE_MODES)}")
        return self._with(in_place=mode == "rewrite_columns")

    def target_bases(self, bases: Sequence[str]) -> Self:
        """Write new fragments to these base paths in turn, by name or path; the dataset's own URI is its root.

        Column files of an update in place, and deletion files, always go to the root.
        """
        return self._with(target_bases=tuple(bases))

    def target_all_bases(self, include_primary: bool = True) -> Self:
        """Write new fragments in turn to the root and to every base path that exists when the merge executes."""
        return self._with(target_all_bases=include_primary)

    def execute(
        self,
        data_obj: Any,
        *,
        schema: pa.Schema | None = None,
        transaction_properties: Mapping[str, str] | None = None,
        runner: Runner | None = None,
    ) -> ExecuteResult:
        """Merge the rows of `data_obj`, which is anything that `write_dataset` takes, or raw files by path.

        A large dataset, files, and with `runner=OnSpark(…)` a DataFrame of Spark are read by tasks, and so is a dataset
        of any size if there is a runner: then no row is held here. Other data is held in memory. A merge that changes
        nothing commits nothing. After a conflict the merge is planned again. Raises `TooManyConcurrentWriters` when
        `conflict_retries` or `retry_timeout` is used up.
        """
        used = runner or InThreads()
        keys = merge_insert.merge_keys(self._dataset.snapshot, self._request)  # a mistake is raised before any work
        with merge_source(
            self._dataset.snapshot, data_obj, schema, runner, keys=keys, replaces=self._request.replaces_rows
        ) as source:
            first = self._dataset.snapshot

            def attempt(current: Snapshot) -> tuple[Snapshot, merge_insert.MergeCounts]:
                if current.version != first.version:  # another writer's rows may have other keys
                    check_keys_fit_frames(current, data_obj, keys, runner)
                if isinstance(source, pa.Table):
                    return merge_insert.merge_insert(current, self._request, source, used, transaction_properties)
                return by_tasks.distributed_merge(current, self._request, source, used, transaction_properties)

            is_long = runner is not None or not isinstance(source, pa.Table)
            kept = refs.keeping_version(attempt, first) if is_long else attempt
            snapshot, counts = writing.retry_conflicts(first, kept, self._retries, self._timeout)
        self._dataset._committed(snapshot)
        return _result(counts)

    def execute_uncommitted(
        self, data_obj: Any, *, schema: pa.Schema | None = None, runner: Runner | None = None
    ) -> tuple[public.Transaction, ExecuteResult]:
        """Write the files of the merge, and return its transaction for `LanceDataset.commit`."""
        snapshot, used = self._dataset.snapshot, runner or InThreads()
        keys = merge_insert.merge_keys(snapshot, self._request)
        with merge_source(
            snapshot, data_obj, schema, runner, keys=keys, replaces=self._request.replaces_rows
        ) as source:
            if isinstance(source, pa.Table):
                plan = merge_insert.plan_merge(snapshot, self._request, source)
                prepared = merge_insert.prepare_merge(plan, used.map(merge_insert.find_matches, plan.tasks), used)
            else:
                shared = by_tasks.plan_distributed_merge(snapshot, self._request, source)
                prepared = by_tasks.prepare_distributed_merge(shared, used)
        prepared.pending.make_durable(snapshot.store)
        return public.Transaction(snapshot.version, public.from_internal(prepared.operation)), _result(prepared.counts)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """Describe the merge of a source with that schema (default: the table's), one plan node in each line.

        Nothing is read. If the way to match rows depends on the number of source keys, the plan names both ways.
        """
        snapshot = self._dataset.snapshot
        return merge_insert.explain_merge_from(snapshot, self._request, schema or snapshot.schema.to_arrow())

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Do the merge without its commit, delete the written files, and return the plan with measured figures."""
        source = reader_of(data_obj, schema).read_all()
        started = perf_counter()
        plan = merge_insert.plan_merge(self._dataset.snapshot, self._request, source)
        prepared = merge_insert.prepare_merge(plan, InThreads().map(merge_insert.find_matches, plan.tasks), InThreads())
        elapsed_ms = 1000 * (perf_counter() - started)
        files = prepared.pending.files
        try:
            num_bytes = sum(store.size(path) for store, path in files)
        finally:
            prepared.pending.abandon()
        metrics = {"bytes_written": num_bytes, "num_files_written": len(files), **_result(prepared.counts)}
        listed = ", ".join(f"{name}={value}" for name, value in metrics.items())
        return f"AnalyzeExec: elapsed={elapsed_ms:.3f}ms, metrics=[{listed}]\n{plan.explain()}"

    def _with(self, **changes: Any) -> Self:
        self._request = replace(self._request, **changes)
        return self


def _result(counts: merge_insert.MergeCounts) -> ExecuteResult:
    return ExecuteResult(
        num_inserted_rows=counts.inserted, num_updated_rows=counts.updated, num_deleted_rows=counts.deleted
    )

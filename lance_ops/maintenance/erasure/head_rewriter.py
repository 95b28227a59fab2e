"""Rewrite the newest version of a branch, its head: delete the rows, and write fragments and indices without them.

Each step is a commit. The older versions still hold the rows, until `removal` removes them.
"""

from __future__ import annotations

from functools import partial

from lance_ops.maintenance.compaction import RewriteTask, commit_rewrites, discard_rewrite, execute_rewrite
from lance_ops.maintenance.erasure.permission import ErasureOptions
from lance_ops.maintenance.erasure.report import ReportDraft
from lance_ops.maintenance.erasure.searching import BranchHoldings, Cause, Search
from lance_ops.maintenance.indexing import rebuild_index
from lance_ops.refs import pinned_if_at_risk
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.transactions import REASON_PROPERTY, Delete, UpdateConfig, remove_files_of_job
from lance_ops.writing import MAX_BYTES_PER_FILE, commit_operation, write_deletion_files

__all__ = ["HeadRewriter"]

_ERASURE_PROPERTY = "lance_ops.erasure"


class HeadRewriter:
    """Commits newest versions that do not hold the rows, and adds what it did to the draft of the report."""

    def __init__(self, options: ErasureOptions, runner: Runner, search: Search, draft: ReportDraft) -> None:
        self._runner = runner
        self._search = search
        self._draft = draft
        self._properties = {REASON_PROPERTY: options.reason, _ERASURE_PROPERTY: draft.report.id}
        self._branches_with_empty_version: set[str] = set()
        """The branches on which a version that changes nothing was committed, once each."""

    def can_rewrite(self, branch: BranchHoldings) -> bool:
        """Return whether a branch's newest version holds the rows, and a commit can change that."""
        if not branch.head_holds:
            return False
        return bool(branch.tainted_fragments or branch.stale_indices) or self._can_commit_empty_version(branch)

    def rewrite(self, branch: BranchHoldings) -> None:
        """Delete the rows, rewrite the fragments that store them, and build the indices anew.

        If the head holds the rows only in its transaction, commit a version that changes nothing, so that the old head
        can be removed.
        """
        head = self._delete_rows(branch)
        head = self._rewrite_fragments(head, branch)
        head = self._rebuild_indices(head, branch)
        if head.version == branch.head.version and self._can_commit_empty_version(branch):
            head = commit_operation(head, UpdateConfig(), properties=self._properties)
            self._branches_with_empty_version.add(branch.name)
            self._draft.set_committed(branch.name, head.version)

    def _can_commit_empty_version(self, branch: BranchHoldings) -> bool:
        """Return whether to commit a version that changes nothing, so that the newest one can be removed.

        Another writer may commit such a transaction again and again, so it is done once on each branch.
        """
        why = branch.holding.get(branch.head.version)
        return (
            why is not None and why.cause is Cause.TRANSACTION and branch.name not in self._branches_with_empty_version
        )

    def _delete_rows(self, branch: BranchHoldings) -> Snapshot:
        head, live = branch.head, branch.live_rows
        if not live:
            return head
        deletions = write_deletion_files(head, live, self._runner)
        # The transaction stays readable, so it must not say which rows.
        operation = Delete(deletions.updated_fragments, deletions.removed_fragment_ids, "erased")
        made = commit_operation(head, operation, properties=self._properties, pending=deletions.pending)
        self._draft.add_counts(erased_rows=sum(map(len, live.values())))
        self._draft.set_committed(branch.name, made.version)
        return made

    def _rewrite_fragments(self, head: Snapshot, branch: BranchHoldings) -> Snapshot:
        reference = SnapshotReference.of(head)
        tasks = [
            RewriteTask(
                reference,
                (fragment.id,),
                max(fragment.physical_rows, 1),
                MAX_BYTES_PER_FILE,
                head.file_version,
                sum(file.file_size_bytes for file in fragment.files),
            )
            for fragment in head.fragments
            if fragment.id in branch.tainted_fragments
        ]
        if not tasks:
            return head
        job = Job.on("erase from", head.uri, head.version, tuple(task.size_bytes for task in tasks), unit="bytes")
        job = job.with_removal(partial(remove_files_of_job, head.store))
        with pinned_if_at_risk(head, head):
            rewrites = self._runner.map(execute_rewrite, tasks, job, partial(discard_rewrite, head.store))
            made, _ = commit_rewrites(head, rewrites, runner=self._runner)
        self._draft.add_counts(rewritten_fragments=len(tasks))
        self._draft.set_committed(branch.name, made.version)
        return made

    def _rebuild_indices(self, head: Snapshot, branch: BranchHoldings) -> Snapshot:
        names = {index.name for index in head.manifest.indices}.intersection(branch.stale_indices)
        for name in sorted(names):
            head = rebuild_index(head, name, runner=self._runner)
            self._search.mark_rebuilt(index for index in head.manifest.indices if index.name == name)
            self._draft.add_rebuilt_index(name)
            self._draft.set_committed(branch.name, head.version)
        return head

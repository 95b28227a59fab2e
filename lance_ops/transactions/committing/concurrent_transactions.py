"""Judge the transactions that other writers committed after the version that ours was planned on.

Every version since then is compared with ours. It can hold our own work already (a replay), conflict with it, or need a
rebase of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from lance_ops.committers import Committer
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import DatasetAlreadyExists, IncompatibleTransaction, RetryableConflict, VersionNotFound
from lance_ops.store import PROCESS_RESOURCES, Store
from lance_ops.table import IndexMetadata, Manifest
from lance_ops.transactions import conflicts, operations
from lance_ops.transactions.committed import (
    CommittedVersion,
    find_duplicate_work,
    is_in_history,
    read_manifest,
    read_version,
    token_of,
)
from lance_ops.transactions.committing.commit_result import CommitResult
from lance_ops.transactions.operation import Operation
from lance_ops.transactions.transaction import Transaction

__all__ = ["ConcurrentTransactions"]

_READ_AT_ONCE = 8


class ConcurrentTransactions:
    """The transactions judged so far, and what ours must take over from them.

    `must_rebase` says that ours does not apply as it was planned. `rewrites` are the rewrites, in order, that ours must
    be remapped through. `has_requested` says whether a version was requested since the caller last made it false: the
    listing before told others.
    """

    def __init__(self, store: Store, committer: Committer, transaction: Transaction) -> None:
        self._store = store
        self._committer = committer
        self._transaction = transaction
        self.must_rebase = False
        self.has_requested = False
        self.rewrites: list[conflicts.CommittedRewriteGroup] = []
        self._conflicting_segments: dict[UUID, RetryableConflict] = {}

    @cached_property
    def _new_fields(self) -> conflicts.NewFields:
        return conflicts.NewFields(self._transaction.operation)

    @cached_property
    def _new_segments(self) -> conflicts.NewSegments:
        return conflicts.NewSegments(self._transaction.operation)

    def judge_versions(self, known: Manifest, latest: int) -> Manifest | CommitResult:
        """Judge every version after `known`; return the newest manifest, or the version that has our work already.

        Raises `RetryableConflict` or `IncompatibleTransaction` if one conflicts with ours. A new segment is a conflict
        only if the newest version has it.
        """
        newest = known
        while latest > newest.version:
            was_far_behind = latest - newest.version > _READ_AT_ONCE
            for first in range(newest.version + 1, latest + 1, _READ_AT_ONCE):
                for version in self._read_several(range(first, min(first + _READ_AT_ONCE, latest + 1))):
                    replay = self.judge_version(version, newest)
                    if replay is not None:
                        self._check_in_history(version, latest)
                        return replay
                    newest = version.manifest
            if was_far_behind:  # otherwise looking for newer versions takes as long as reading these did
                latest = self._committer.latest() or 0
        for index in newest.indices:
            if index.uuid in self._conflicting_segments:
                raise self._conflicting_segments[index.uuid]
        return newest

    def judge_version(self, version: CommittedVersion, before: Manifest) -> CommitResult | None:
        """Judge one version, which was made from `before`; return it if it has our work already, else None.

        Raises `RetryableConflict` or `IncompatibleTransaction` if it conflicts with ours.
        """
        ours, theirs = self._transaction, version.transaction
        if theirs is not None:
            token = token_of(ours)
            if theirs.uuid == ours.uuid or (token is not None and token_of(theirs) == token):
                return CommitResult(version.version, version.manifest, theirs, replayed=True)
            twice = find_duplicate_work(ours, theirs)
            if twice:
                raise RetryableConflict(f"{self._against(version)}: both {twice}. Plan it again on the newest version")
        if ours.read_version == 0:
            raise self._exists_already()
        match self._verdict(version, before):
            case conflicts.Retry(reason):
                raise self._retryable(version, reason)
            case conflicts.Incompatible(reason):
                raise IncompatibleTransaction(f"{self._against(version)}: {reason}. The two are incompatible")
            case conflicts.Rebase() | conflicts.Remap():
                self.must_rebase = True
                if theirs is not None and isinstance(theirs.operation, operations.Rewrite):
                    self.rewrites += conflicts.CommittedRewriteGroup.all_of(theirs.operation, version.manifest)
            case _:
                pass
        return None

    def _verdict(self, version: CommittedVersion, before: Manifest) -> conflicts.Verdict:
        """Compare the operations, and where their footprints do not tell, the manifests before and after theirs."""
        theirs = version.transaction.operation if version.transaction else None
        if isinstance(self._transaction.operation, operations.Rewrite):
            theirs = self._without_conflicting_segments(version, theirs, self._transaction.operation)
        rewrites = [rewrite.fragment_ids for rewrite in self.rewrites]
        verdict = conflicts.judge(self._transaction.operation, theirs, rewrites)
        if theirs is None or not isinstance(verdict, conflicts.Compatible):
            return verdict
        after = version.manifest
        return (
            self._new_fields.judge(theirs, before.schema, after.schema)
            or self._new_segments.judge(theirs, before, after, rewrites)
            or self._without_removed_segments(before, after)
            or verdict
        )

    def _without_removed_segments(self, before: Manifest, after: Manifest) -> conflicts.Rebase | None:
        """Return `Rebase` if theirs removed a segment that our rewrite remaps, as it does with the segment's column."""
        ours = self._transaction.operation
        if not isinstance(ours, operations.Rewrite) or not ours.rewritten_indices:
            return None
        remapped = {index.old_id for index in ours.rewritten_indices}
        removed = {index.uuid for index in before.indices} - {index.uuid for index in after.indices}
        return conflicts.Rebase(frozenset()) if remapped & removed else None

    def _without_conflicting_segments(
        self, version: CommittedVersion, theirs: Operation | None, ours: operations.Rewrite
    ) -> Operation | None:
        """Leave out their new segments that conflict with our rewrite, and record the conflicts.

        Such a segment is a conflict only if no later version removes it, as one does that builds the index again or
        drops its column. A later rewrite replaces it by a segment of the same rows, which is a conflict unless ours
        remaps that one.
        """
        if isinstance(theirs, operations.Rewrite):
            remapped = {
                index.new_id for index in theirs.rewritten_indices if index.old_id in self._conflicting_segments
            }
            self._record_conflicts(
                version, (index for index in version.manifest.indices if index.uuid in remapped), ours
            )
        if not isinstance(theirs, operations.CreateIndex):
            return theirs
        conflicting = self._record_conflicts(version, theirs.new_indices, ours)
        return replace(
            theirs, new_indices=tuple(index for index in theirs.new_indices if index.uuid not in conflicting)
        )

    def _record_conflicts(
        self, version: CommittedVersion, segments: Iterable[IndexMetadata], ours: operations.Rewrite
    ) -> frozenset[UUID]:
        """Record the new segments that conflict with our rewrite, and return their ids."""
        found = {}
        for index in segments:
            verdict = conflicts.judge(ours, operations.CreateIndex((index,)))
            if isinstance(verdict, conflicts.Retry):
                found[index.uuid] = self._retryable(version, verdict.reason)
        self._conflicting_segments |= found
        return frozenset(found)

    def _read_several(self, versions: Sequence[int]) -> Iterable[CommittedVersion]:
        """Read versions, concurrently if each read is a request."""
        at_once = len(versions) > 1 and not self._store.reads_in_place
        return PROCESS_RESOURCES.threads().map(self._read, versions) if at_once else map(self._read, versions)

    def _read(self, version: int) -> CommittedVersion:
        if self._committer.as_listed(version) is None:
            self.has_requested = True
        try:
            return read_version(self._store, self._committer, version, as_listed=True)
        except VersionNotFound as error:
            if self._transaction.read_version == 0:
                raise self._exists_already() from error
            raise RetryableConflict(
                f"{self._store.uri}: version {version} was cleaned up before {self._transaction.operation.name} "
                "could be compared with it: plan it again on the newest version"
            ) from error

    def _check_in_history(self, version: CommittedVersion, latest: int) -> None:
        """Raise if a version that has our work is stray, or if this cannot be told any more."""
        after = self._read(version.version + 1) if version.version < latest else None
        if not is_in_history(version, after, partial(read_manifest, self._store, self._committer)):
            raise RetryableConflict(
                f"{self._against(version)}: it was created after its number had been used and cleaned up, so the "
                "later versions do not hold it. Plan it again on the newest version"
            )

    def _retryable(self, version: CommittedVersion, reason: str) -> RetryableConflict:
        return RetryableConflict(
            f"{self._against(version)}: {reason}. This is a retryable conflict: plan it again on the newest version"
        )

    def _exists_already(self) -> DatasetAlreadyExists:
        return DatasetAlreadyExists(f"{self._store.uri} holds a dataset already")

    def _against(self, version: CommittedVersion) -> str:
        ours, theirs = self._transaction, version.transaction
        by = theirs.operation.name if theirs else "a missing transaction"
        return (
            f"{self._store.uri}: {ours.operation.name} planned on version {ours.read_version} conflicts with "
            f"version {version.version}, made by {by}"
        )

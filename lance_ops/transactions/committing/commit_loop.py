"""The one retry loop: make a transaction the next version while other writers commit.

    1  write the transaction's file, so that readers of the version find it
    2  judge the versions that others committed after the read version; a conflict ends the commit
    3  apply the operation to the newest manifest, and commit the result as the version after it
    4  if another writer made this version first, judge it, and try the version after it
    5  an unknown outcome ends the commit with `CommitStateUnknown`, and nothing is deleted

Every other error means that the commit did not and will not happen. The loop then removes the files that it wrote
itself, and the caller may remove the files that the transaction was to bring.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lance_ops.committers import Abandoned, Committed, Committer, Conflict, Unknown
from lance_ops.core.errors import (
    CommitStateUnknown,
    InvalidInput,
    RetryableConflict,
    TooManyConcurrentWriters,
    UnsafeStore,
    WriteRefused,
)
from lance_ops.core.file_names import is_detached
from lance_ops.store import Store, put_new_as_proof
from lance_ops.table import MANIFEST_CACHE, Manifest, check_adds_no_violation, check_writable, encode_manifest
from lance_ops.table.manifest import FileLocations
from lance_ops.transactions import conflicts
from lance_ops.transactions.committed import (
    CommittedVersion,
    decode_version,
    is_listed_in_same_dataset,
    read_manifest,
)
from lance_ops.transactions.committing.after_commit import (
    begin_check,
    check_made_in_same_dataset,
    check_not_stray,
    errors_as_unknown_outcome,
    is_made_in_same_dataset,
)
from lance_ops.transactions.committing.before_commit import check_has_next, check_same_dataset, planned_manifest
from lance_ops.transactions.committing.commit_lock import commit_lock
from lance_ops.transactions.committing.commit_result import CommitResult
from lance_ops.transactions.committing.concurrent_transactions import ConcurrentTransactions
from lance_ops.transactions.next_version import NO_TABLE, next_manifest
from lance_ops.transactions.operation import ApplyContext
from lance_ops.transactions.transaction import Transaction

__all__ = ["MAX_RETRIES", "commit"]

MAX_RETRIES = 20
"""How many races a commit may lose by default; the reference's number."""

_FIRST_PAUSE_SECONDS = 0.01  # at most: if an attempt takes less, as on a local disk, the pause is as short
_LONGEST_PAUSE_SECONDS = 2.0


def commit(
    committer: Committer,
    store: Store,
    transaction: Transaction,
    *,
    base: Manifest | None = None,
    data_storage_version: str | None = None,
    stable_row_ids: bool = False,
    storage_options: Mapping[str, str] | None = None,
    max_retries: int = MAX_RETRIES,
    timeout_seconds: float = 1800.0,
    after: Iterable[str] = (),
) -> CommitResult:
    """Commit a transaction; `base` is the manifest of its `read_version`, which is read if the caller passes None.

    A `read_version` of 0 creates the table. `data_storage_version` and `stable_row_ids` matter only to a creation or an
    overwrite. `storage_options` open the files under the table's base paths. The commit fails after `max_retries` + 1
    lost races. The files that the transaction brings must be durable, except those in `after`: the committer makes them
    durable before the version exists.

    Raises `CommitStateUnknown` if the outcome is not known yet. Every other error means that nothing was committed:
    `RetryableConflict` for a conflict that a new plan resolves, and `IncompatibleTransaction` for one that it does not;
    `TooManyConcurrentWriters` if the races or the time are used up; `DatasetAlreadyExists` and `DatasetNotFound`;
    `VersionNotFound` for a version that the operation needs; `InvalidInput` and `UnsupportedFeature` for an operation
    that this table cannot take; `CorruptFile` for a manifest, a transaction or a deletion file that cannot be decoded;
    `UnsafeStore` if the store cannot create a version only once; `WriteRefused` or another `StoreError` if the store
    fails before the version is written.
    """
    if is_detached(transaction.read_version):
        raise InvalidInput(
            f"{store.uri}: version {transaction.read_version} is detached, so no version of the history follows it: "
            "restore it first, or commit with detached=True"
        )
    context = ApplyContext(data_storage_version=data_storage_version, stable_row_ids=stable_row_ids)
    attempts = _Commit(
        committer,
        store,
        transaction,
        context,
        storage_options,
        time.monotonic() + timeout_seconds,
        max_retries,
        tuple(after),
    )
    try:
        result = attempts.run(base)
    except CommitStateUnknown:
        raise
    except Exception:  # every other error means that there is no version
        attempts.undo()
        raise
    if result.replayed:
        attempts.undo(keep_transaction=result.transaction.uuid == transaction.uuid)
    return result


class _Commit:
    """One call of `commit`: the transactions judged so far, and the files written on the way."""

    def __init__(
        self,
        committer: Committer,
        store: Store,
        transaction: Transaction,
        context: ApplyContext,
        storage_options: Mapping[str, str] | None,
        deadline: float,
        max_retries: int,
        after: tuple[str, ...],
    ) -> None:
        self._committer = committer
        self._store = store
        self._transaction = transaction
        self._context = context
        self._storage_options = storage_options
        self._deadline = deadline
        self._max_retries = max_retries
        # The transaction's file need not be durable: the manifest holds the same bytes. But the first one of a table
        # creates the directory.
        self._after = after if transaction.read_version else (*after, transaction.path)
        self._concurrent = ConcurrentTransactions(store, committer, transaction)
        self._superseded: tuple[str, ...] = ()
        self._written_transaction: bytes | None = None
        self._finish_early_write: Callable[[], object] = lambda: None
        self._vectors: conflicts.DeletionVectors | None = None  # a rebase makes them

    def run(self, base: Manifest | None) -> CommitResult:
        planned: Manifest | None = None
        newest = NO_TABLE
        self._begin_early_write()
        for lost_races in range(self._max_retries + 1):
            with commit_lock(self._store.uri, self._deadline - time.monotonic()) as is_locked:
                if not is_locked:
                    raise self._too_late()
                began = time.monotonic()
                latest = self._committer.latest(known=None if lost_races else self._version_of(base)) or 0
                self._concurrent.has_requested = False
                if planned is None:
                    planned = newest = planned_manifest(self._store, self._committer, self._transaction, base, latest)
                    self._concurrent.has_requested = planned is not base
                judged = self._concurrent.judge_versions(newest, latest)
                if isinstance(judged, CommitResult):
                    return judged
                transaction = self._rebased(planned, judged)
                result = self._attempt(judged, transaction, planned)
            if isinstance(result, CommitResult):
                self._remove(self._superseded)
                return result
            newest = result.manifest
            if lost_races < self._max_retries:
                self._pause(lost_races + 1, time.monotonic() - began)
        raise TooManyConcurrentWriters(
            f"{self._store.uri}: {self._transaction.operation.name} lost {self._max_retries + 1} races for the next "
            "version: Too many concurrent writers; try again when there are fewer"
        )

    def _version_of(self, base: Manifest | None) -> int | None:
        """Return the version that the caller knows, 0 if the commit makes the first one; None if it knows none."""
        if base is not None:
            return base.version
        return None if self._transaction.read_version else 0

    def undo(self, *, keep_transaction: bool = False) -> None:
        """Remove the files that this call wrote; another call with the same transaction needs the transaction's.

        It raises no error: the commit has its outcome already.
        """
        with suppress(Exception):
            if self._vectors is not None:
                self._vectors.remove_written()
        with suppress(Exception):
            self._wait_for_early_write()
        if self._written_transaction is not None and not keep_transaction:
            self._remove([self._transaction.path])

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(Exception):  # the commit has its outcome; clean-up removes what cannot be deleted now
                self._store.delete(path)

    def _rebased(self, base: Manifest, newest: Manifest) -> Transaction:
        """Return the transaction as it applies to the newest version; it is always rebased from its planned form."""
        if not self._concurrent.must_rebase:
            return self._transaction
        locations = FileLocations(self._store, newest.base_paths, self._storage_options)
        if self._vectors is None:
            self._vectors = conflicts.DeletionVectors(self._store, locations)
        self._vectors.locations = locations
        rebased = conflicts.rebase(self._transaction.operation, base, newest, self._concurrent.rewrites, self._vectors)
        if isinstance(rebased, conflicts.Retry):
            raise RetryableConflict(
                f"{self._store.uri}: {self._transaction.operation.name} planned on version {base.version}: "
                f"{rebased.reason}. This is a retryable conflict: plan it again on the newest version"
            )
        self._superseded = rebased.superseded
        return replace(self._transaction, operation=rebased.operation)

    def _attempt(
        self, newest: Manifest, transaction: Transaction, planned: Manifest
    ) -> CommitResult | CommittedVersion:
        """Commit as the version after `newest`; return the version that another writer made first, if one did.

        The check for the same dataset comes after every other read, so that it holds for all of them. If nothing was
        requested since the versions were listed, the listing tells. The check is repeated once the version exists.
        """
        check_has_next(self._store, newest)
        if newest.version:
            check_writable(newest, f"{self._store.uri} at version {newest.version}")
        numbers = transaction.operation.needed_versions
        has_requested = self._concurrent.has_requested or transaction is not self._transaction
        has_requested |= any(self._committer.as_listed(version) is None for version in numbers)
        needed = {v: read_manifest(self._store, self._committer, v, as_listed=True) for v in numbers}
        context = replace(self._context, manifests=needed) if needed else self._context
        made = next_manifest(newest, transaction, context, time.time_ns())
        encoded = transaction.encode()

        self._wait_for_early_write()
        is_listed = partial(is_listed_in_same_dataset, self._store, self._committer)
        if has_requested or not is_listed(planned):
            is_checked = self._store.begin_call(
                partial(check_same_dataset, self._store, self._committer, transaction, planned, newest)
            )
            self._write_transaction(transaction, encoded)
            is_checked()
        else:
            self._write_transaction(transaction, encoded)
        will_be_listed = is_listed(newest)
        data = encode_manifest(made, encoded)
        check = partial(check_adds_no_violation, newest if newest.version else None, made)
        match self._put(made.version, data, check):
            case Committed(location=location, newest=found):
                with errors_as_unknown_outcome(transaction, made):
                    ask = partial(is_made_in_same_dataset, self._store, self._committer, made, newest)
                    asked = ask if will_be_listed else begin_check(self._store, ask)
                    check_not_stray(self._store, self._committer, transaction, made, newest, found)
                    if not is_listed(newest):
                        check_made_in_same_dataset(self._store, self._committer, transaction, made, asked)
                    MANIFEST_CACHE.add(data, self._store.uri_of(location), made)
                return CommitResult(made.version, made, transaction)
            case Unknown(reason=reason):
                raise CommitStateUnknown(transaction.uuid, made.version, reason)
            case Conflict(theirs=theirs):
                other = decode_version(self._store, self._committer, made.version, theirs)
                replay = self._concurrent.judge_version(other, newest)
                return replay if replay is not None else other

    def _begin_early_write(self) -> None:
        """Begin to write the transaction's file beside the first look, if both are requests."""
        if not self._store.reads_in_place:
            write = partial(self._write_transaction, self._transaction, self._transaction.encode())
            self._finish_early_write = self._store.begin_call(write)

    def _wait_for_early_write(self) -> None:
        finish, self._finish_early_write = self._finish_early_write, lambda: None
        finish()

    def _write_transaction(self, transaction: Transaction, encoded: bytes) -> None:
        """Write the transaction's file unless it holds these bytes. The manifest keeps them durably."""
        before, self._written_transaction = self._written_transaction, encoded
        if before is None and self._committer.relies_on_conditional_create:
            put_new_as_proof(self._store, transaction.path, encoded)
        elif encoded != before:
            self._store.put_hint(transaction.path, encoded)

    def _put(self, version: int, data: bytes, prepare: Callable[[], None]) -> Committed | Conflict | Unknown:
        """Commit the manifest after `prepare` has run; raise the error of `prepare` if it fails."""
        refusal: Exception | None = None
        is_asked = False

        def is_prepared() -> bool:
            nonlocal refusal, is_asked
            if not is_asked:  # the committer asks again when it repeats a put of unknown outcome: same answer
                is_asked = True
                try:
                    prepare()
                except Exception as error:  # noqa: BLE001 - raised below; here it would look like a failed commit
                    refusal = error
            return refusal is None

        after = (*self._after, *(self._vectors.written_paths if self._vectors is not None else ()))
        try:
            outcome = self._committer.commit(version, data, after=after, prepare=is_prepared)
        except (WriteRefused, UnsafeStore, RetryableConflict):
            raise
        except Exception as error:  # whatever it is, the version may exist
            raise CommitStateUnknown(self._transaction.uuid, version, repr(error)) from error
        if isinstance(outcome, Abandoned):
            assert refusal is not None
            raise refusal
        return outcome

    def _pause(self, lost_races: int, attempt_seconds: float) -> None:
        """Wait for a random time, whose bound doubles with each lost race."""
        first = min(attempt_seconds, _FIRST_PAUSE_SECONDS)
        pause = random.uniform(0, min(first * 2.0**lost_races, _LONGEST_PAUSE_SECONDS))
        if time.monotonic() + pause > self._deadline:
            raise self._too_late()
        time.sleep(pause)

    def _too_late(self) -> TooManyConcurrentWriters:
        return TooManyConcurrentWriters(
            f"{self._store.uri}: {self._transaction.operation.name} did not win the next version in time: "
            "Too many concurrent writers; try again when there are fewer"
        )

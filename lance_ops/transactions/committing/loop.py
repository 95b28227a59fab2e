"""The one retry loop: make a transaction the next version, whoever else commits meanwhile.

    1  the transaction's file is written, so that readers of the version find it whatever happens next
    2  what landed since the version that was read is judged; a conflict ends the commit
    3  the operation is applied to the newest manifest, and the result committed as the version after it
    4  a version that somebody else made first is judged as well, and the loop goes on behind it
    5  an unknown outcome ends the commit with `CommitStateUnknown`, and nothing is deleted

Every other error means that the commit did not and will not happen: what it wrote itself is removed, and the caller may
remove the files that the transaction was to bring in.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

from lance_ops.committers import Committed, Committer, Conflict, Unknown, Withheld
from lance_ops.core.errors import (
    CommitStateUnknown,
    DatasetAlreadyExists,
    DatasetNotFound,
    IncompatibleTransaction,
    LanceOpsError,
    RetryableConflict,
    TooManyConcurrentWriters,
    UnsafeStore,
    VersionNotFound,
    WriteRefused,
)
from lance_ops.store import PER_PROCESS, Store
from lance_ops.table import KNOWN_MANIFESTS, Manifest, check_adds_no_violation, check_writable, encode_manifest
from lance_ops.table.manifest import Bases
from lance_ops.transactions.committed import (
    Landed,
    Landing,
    decode_version,
    done_by_both,
    has_grown,
    lives_on,
    read_manifest,
    read_version,
    see_home,
    share_files,
    token_of,
    was_continued,
)
from lance_ops.transactions.committing.turns import turn
from lance_ops.transactions.conflicts import (
    Carry,
    Compatible,
    DeletionVectors,
    Incompatible,
    Move,
    NewFields,
    Rebase,
    Retry,
    judge,
    rebase,
)
from lance_ops.transactions.manifest_changes import with_other_values
from lance_ops.transactions.manifest_steps import NO_TABLE, next_manifest
from lance_ops.transactions.operation import Context
from lance_ops.transactions.operations import Rewrite
from lance_ops.transactions.transaction import Transaction

__all__ = ["MAX_RETRIES", "CommitResult", "commit"]

MAX_RETRIES = 20
"""Races that a commit may lose, if its caller does not say; the reference's number."""

_FIRST_PAUSE_SECONDS = 0.01  # at most: where an attempt takes less, as on a local disk, the pause does too
_LONGEST_PAUSE_SECONDS = 2.0
_READ_AT_ONCE = 8


@dataclass(frozen=True)
class CommitResult:
    """The version that holds the work.

    `replayed` says that it was there already. `transaction` is the one that made it: when its UUID is not that of the
    transaction handed in, another commit with the same token did the work, and our own files are not in the table.
    """

    version: int
    manifest: Manifest
    transaction: Transaction
    replayed: bool = False


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
    """Commit a transaction; `base` is the manifest of its `read_version`, read again if not given.

    Version 0 as `read_version` means that the table is to be created. The next two arguments matter to a creation or an
    overwrite only. `storage_options` open what lies under the table's base paths. `max_retries` bounds how many races
    may be lost. What the transaction brings is durable already, but for the files `after` which the version comes.

    Raises `RetryableConflict`, `IncompatibleTransaction`, `TooManyConcurrentWriters`, `DatasetAlreadyExists` and, for
    what cannot be written, `InvalidInput` or `UnsupportedFeature`: nothing was committed. Raises `CommitStateUnknown`
    when only the future can tell.
    """
    context = Context(data_storage_version=data_storage_version, stable_row_ids=stable_row_ids)
    attempt = _Attempt(
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
        result = attempt.run(base)
    except CommitStateUnknown:
        raise
    except Exception:  # whatever it was, no version is there
        attempt.undo()
        raise
    if result.replayed:
        attempt.undo(keep_transaction=result.transaction.uuid == transaction.uuid)
    return result


class _Attempt:
    """One call of `commit`: what was judged so far, and what was written on the way."""

    def __init__(
        self,
        committer: Committer,
        store: Store,
        transaction: Transaction,
        context: Context,
        storage_options: Mapping[str, str] | None,
        deadline: float,
        max_retries: int,
        after: tuple[str, ...],
    ) -> None:
        self._committer = committer
        self._store = store
        self._transaction = transaction
        self._context = context
        self._deadline = deadline
        self._max_retries = max_retries
        # Later ones need not be durable, since the manifest holds the same; this one makes their directory.
        self._after = after if transaction.read_version else (*after, transaction.path)
        self._must_rebase = False
        self._moves: list[Move] = []
        self._superseded: tuple[str, ...] = ()
        self._written: bytes | None = None
        self._storage_options = storage_options
        self._vectors = DeletionVectors(store, Bases(store))

    @cached_property
    def _new_fields(self) -> NewFields:
        return NewFields(self._transaction.operation)

    def run(self, base: Manifest | None) -> CommitResult:
        planned: Manifest | None = None
        newest = NO_TABLE
        for lost_races in range(self._max_retries + 1):
            with turn(self._store.uri, self._deadline - time.monotonic()) as has_turn:
                if not has_turn:
                    raise self._too_late()
                began = time.monotonic()
                latest = self._committer.latest(known=base.version if base and not lost_races else None) or 0
                if planned is None:
                    planned = newest = self._base(base, latest)
                landed = self._judge_landed(newest, latest)
                if isinstance(landed, CommitResult):
                    return landed
                result = self._try(landed, self._rebased(planned, landed), planned)
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

    def undo(self, *, keep_transaction: bool = False) -> None:
        """Remove what this call wrote; the transaction's file is also that of another call with the same one."""
        self._vectors.remove_written()
        if self._written is not None and not keep_transaction:
            self._remove([self._transaction.path])

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(LanceOpsError):  # what cannot be deleted now is left to clean-up
                self._store.delete(path)

    def _base(self, base: Manifest | None, latest: int) -> Manifest:
        """Return the manifest of the version that was read, which must still be there, as the latest one is."""
        read_version = self._transaction.read_version
        if read_version == 0:
            return NO_TABLE
        try:
            if base is None or base.version != read_version:
                return read_manifest(self._store, self._committer, read_version)
            if read_version != latest and not self._committer.exists(read_version):
                raise VersionNotFound(f"version {read_version} is gone")
        except VersionNotFound as error:
            raise self._base_is_gone(latest) from error
        return base

    def _base_is_gone(self, latest: int | None) -> LanceOpsError:
        if not latest:
            return DatasetNotFound(f"no Lance dataset at {self._store.uri}")
        return RetryableConflict(
            f"{self._store.uri}: version {self._transaction.read_version}, which {self._transaction.operation.name} "
            "was planned on, was cleaned up: plan it again on the newest version"
        )

    def _check_same_dataset(self, base: Manifest, newest: Manifest) -> None:
        """Raise if the version we read is another by now: the dataset was removed, and one begun under its name."""
        if base.version == 0:
            return
        try:
            if lives_on(self._store, self._committer, base):
                return
        except VersionNotFound as error:
            if base.version < newest.version and share_files(base, newest):
                return  # clean-up took it since the versions after it were read
            raise self._base_is_gone(self._committer.latest()) from error
        raise self._other_dataset()

    def _other_dataset(self) -> IncompatibleTransaction:
        return IncompatibleTransaction(
            f"{self._store.uri}: the dataset that {self._transaction.operation.name} was planned on was removed, and "
            "another begun in its place: open it again"
        )

    def _judge_landed(self, known: Manifest, latest: int) -> Manifest | CommitResult:
        """Judge every version since `known`; return the newest manifest, or the commit if it was made already."""
        newest = known
        while latest > newest.version:
            was_far_behind = latest - newest.version > _READ_AT_ONCE
            for first in range(newest.version + 1, latest + 1, _READ_AT_ONCE):
                for landed in self._read_several(range(first, min(first + _READ_AT_ONCE, latest + 1))):
                    replay = self._judge(landed, newest)
                    if replay is not None:
                        self._check_no_ghost(landed, latest)
                        return replay
                    newest = landed.manifest
            if was_far_behind:  # else to look what landed meanwhile would take as long as these took
                latest = self._committer.latest() or 0
        return newest

    def _read_several(self, versions: Sequence[int]) -> Iterable[Landed]:
        """Read versions, at the same time where each takes a request."""
        at_once = len(versions) > 1 and not self._store.reads_in_place
        return PER_PROCESS.pool().map(self._read_landed, versions) if at_once else map(self._read_landed, versions)

    def _read_landed(self, version: int) -> Landed:
        try:
            return read_version(self._store, self._committer, version)
        except VersionNotFound as error:
            if self._transaction.read_version == 0:
                raise self._exists_already() from error
            raise RetryableConflict(
                f"{self._store.uri}: version {version} was cleaned up before {self._transaction.operation.name} "
                "could be compared with it: plan it again on the newest version"
            ) from error

    def _check_no_ghost(self, landed: Landed, latest: int) -> None:
        """Raise if a version that has our work is none that the newest, `latest`, came of."""
        after = self._read_landed(landed.version + 1) if landed.version < latest else None
        if not has_grown(landed, after, partial(read_manifest, self._store, self._committer)):
            raise RetryableConflict(
                f"{self._against(landed)}: it arrived when others had gone on, and nothing came of it. Plan it again "
                "on the newest version"
            )

    def _judge(self, landed: Landed, before: Manifest) -> CommitResult | None:
        """Raise if the version that landed after `before` stands against ours; return the commit if it is ours."""
        ours, theirs = self._transaction, landed.transaction
        if theirs is not None:
            token = token_of(ours)
            if theirs.uuid == ours.uuid or (token is not None and token_of(theirs) == token):
                return CommitResult(landed.version, landed.manifest, theirs, replayed=True)
            twice = done_by_both(ours, theirs)
            if twice:
                raise RetryableConflict(f"{self._against(landed)}: both {twice}. Plan it again on the newest version")
        if ours.read_version == 0:
            raise self._exists_already()
        verdict = judge(ours.operation, theirs.operation if theirs else None, (move.moved for move in self._moves))
        if theirs is not None and isinstance(verdict, Compatible):
            verdict = self._new_fields.judge(theirs.operation, before.schema, landed.manifest.schema) or verdict
            if theirs.operation.footprint().restates_fragments and self._reads_other_values(before, landed.manifest):
                verdict = Retry("values of a new index were changed")
        match verdict:
            case Retry(reason):
                raise RetryableConflict(
                    f"{self._against(landed)}: {reason}. This is a retryable conflict: plan it again on the newest "
                    "version"
                )
            case Incompatible(reason):
                raise IncompatibleTransaction(f"{self._against(landed)}: {reason}. The two are incompatible")
            case Rebase() | Carry():
                self._must_rebase = True
                if theirs is not None and isinstance(theirs.operation, Rewrite):
                    self._moves += Move.all_of(theirs.operation, landed.manifest)
            case _:
                pass
        return None

    def _reads_other_values(self, before: Manifest, after: Manifest) -> bool:
        """Return whether a new index of ours holds values that are others now."""
        return any(
            part.reaches(with_other_values(before, after, part.fields))
            for part in self._transaction.operation.footprint().indexed
        )

    def _exists_already(self) -> DatasetAlreadyExists:
        return DatasetAlreadyExists(f"{self._store.uri} holds a dataset already")

    def _against(self, landed: Landed) -> str:
        ours, theirs = self._transaction, landed.transaction
        by = theirs.operation.name if theirs else "a missing transaction"
        return (
            f"{self._store.uri}: {ours.operation.name} planned on version {ours.read_version} stands against "
            f"version {landed.version}, made by {by}"
        )

    def _rebased(self, base: Manifest, newest: Manifest) -> Transaction:
        """Return the transaction as it applies to the newest version; always from how it was planned."""
        if not self._must_rebase:
            return self._transaction
        self._vectors.bases = Bases(self._store, newest.base_paths, self._storage_options)
        rebased = rebase(self._transaction.operation, base, newest, self._moves, self._vectors)
        if isinstance(rebased, Retry):
            raise RetryableConflict(
                f"{self._store.uri}: {self._transaction.operation.name} planned on version {base.version}: "
                f"{rebased.reason}. This is a retryable conflict: plan it again on the newest version"
            )
        self._superseded = rebased.superseded
        return replace(self._transaction, operation=rebased.operation)

    def _try(self, newest: Manifest, transaction: Transaction, planned: Manifest) -> CommitResult | Landed:
        """Commit as the version after `newest`; return the version that somebody else made instead, if so.

        That it is still one dataset is looked at last of all, so that it holds of what was read before, and once more
        when the version is there.
        """
        if newest.version:
            check_writable(newest, f"{self._store.uri} at version {newest.version}")
        needed = {
            version: read_manifest(self._store, self._committer, version)
            for version in transaction.operation.needed_versions
        }
        made = next_manifest(newest, transaction, replace(self._context, manifests=needed), time.time_ns())
        encoded = transaction.encode()

        self._write(transaction, encoded)
        self._check_same_dataset(planned, newest)
        data = encode_manifest(made, encoded)
        check = partial(check_adds_no_violation, newest if newest.version else None, made)
        match self._put(made.version, data, check):
            case Committed(location=location, newest=found):
                self._check_not_revived(made, newest, found)
                self._check_not_astray(made, newest)
                KNOWN_MANIFESTS.add(data, self._store.uri_of(location), made)
                return CommitResult(made.version, made, transaction)
            case Unknown(reason=reason):
                raise CommitStateUnknown(transaction.uuid, made.version, reason)
            case Conflict(theirs=theirs):
                landed = decode_version(self._store, self._committer, made.version, theirs)
                replay = self._judge(landed, newest)
                return replay if replay is not None else landed

    def _write(self, transaction: Transaction, encoded: bytes) -> None:
        """Write the transaction's file, unless it is there as it is now. The manifest is what holds it for certain."""
        if encoded != self._written:
            self._written = encoded
            self._store.put_hint(transaction.path, encoded)

    def _put(self, version: int, data: bytes, prepare: Callable[[], None]) -> Committed | Conflict | Unknown:
        """Commit once `prepare` is done, and raise what that raises."""
        refusal: Exception | None = None

        @cache  # an attempt that is repeated after a doubt must not be withheld
        def is_prepared() -> bool:
            nonlocal refusal
            try:
                prepare()
            except Exception as error:  # noqa: BLE001 - raised below, where it is no failure of the commit itself
                refusal = error
            return refusal is None

        after = (*self._after, *self._vectors.written_paths)
        try:
            outcome = self._committer.commit(version, data, after=after, prepare=is_prepared)
        except (WriteRefused, UnsafeStore):
            raise
        except Exception as error:  # whatever it was, the version may be there
            raise CommitStateUnknown(self._transaction.uuid, version, repr(error)) from error
        if isinstance(outcome, Withheld):
            assert refusal is not None
            raise refusal
        return outcome

    def _check_not_revived(self, made: Manifest, before: Manifest, found: int | None) -> None:
        """Notice that our version had been made by others long ago, and cleaned up while this process slept.

        Then it is not the newest (`found` is, where that is known already), and what came after it was not made from
        it. Whether anybody will build on ours cannot be told, so nothing may be deleted.
        """
        if self._committer.remembers_removed:
            return
        try:
            newest = self._committer.latest() if found is None else found
            if newest is None or newest <= made.version or self._was_continued(made, before):
                return
        except LanceOpsError:
            return  # it is committed, and what could not be asked now is no reason to doubt it
        raise CommitStateUnknown(
            self._transaction.uuid,
            made.version,
            f"a version of that number was there before and cleaned up while the commit was under way; the newest is "
            f"{newest}",
        )

    def _check_not_astray(self, made: Manifest, before: Manifest) -> None:
        """Raise if our version is in another dataset than the one it was made for, begun since we looked."""
        match see_home(self._store, self._committer, made, before):
            case Landing.TAKEN_BACK:
                raise self._other_dataset()
            case Landing.OUT_OF_REACH:
                reason = "the dataset was removed meanwhile, and ours is in another that was begun in its place"
                raise CommitStateUnknown(self._transaction.uuid, made.version, reason)

    def _was_continued(self, made: Manifest, before: Manifest) -> bool:
        try:
            after = read_version(self._store, self._committer, made.version + 1)
        except VersionNotFound:
            return False
        return was_continued(made, before, after, partial(read_manifest, self._store, self._committer))

    def _pause(self, lost_races: int, attempt_seconds: float) -> None:
        """Wait, longer with each lost race and never as long as the others."""
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

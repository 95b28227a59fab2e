"""Check, after a commit, that the version it made is in the history and the dataset that it was made for.

The committer can create a version long after the last check before the commit, because a process can sleep in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from lance_ops.committers import Committer
from lance_ops.core.errors import (
    CommitStateUnknown,
    CorruptFile,
    IncompatibleTransaction,
    LanceOpsError,
    VersionNotFound,
)
from lance_ops.store import Store
from lance_ops.table import Manifest
from lance_ops.transactions.committed import descends_from, read_manifest, read_version, was_made_in_same_dataset
from lance_ops.transactions.committing.before_commit import dataset_replaced_error
from lance_ops.transactions.transaction import Transaction

__all__ = [
    "begin_check",
    "check_made_in_same_dataset",
    "check_not_stray",
    "errors_as_unknown_outcome",
    "is_made_in_same_dataset",
]


@contextmanager
def errors_as_unknown_outcome(transaction: Transaction, made: Manifest) -> Iterator[None]:
    """Raise `CommitStateUnknown` for any error of the block, so that nothing that the version `made` names is deleted.

    `IncompatibleTransaction` passes: the block raises it once it has withdrawn the version.
    """
    try:
        yield
    except (CommitStateUnknown, IncompatibleTransaction):
        raise
    except Exception as error:
        reason = f"the version exists, but a check that follows the commit failed: {error!r}"
        raise CommitStateUnknown(transaction.uuid, made.version, reason) from error


def begin_check(store: Store, check: Callable[[], bool]) -> Callable[[], bool]:
    """Begin a check as `Store.begin_call` does. If no thread can be had, it runs when its result is asked for."""
    try:
        return store.begin_call(check)
    except RuntimeError:  # the process has too many threads, or is ending
        return check


def check_not_stray(
    store: Store, committer: Committer, transaction: Transaction, made: Manifest, before: Manifest, newest: int | None
) -> None:
    """Raise `CommitStateUnknown` if `made`, which was made from `before`, is a stray version.

    It is also raised if another writer has made a first version under the other naming scheme.

    It is stray if other writers had made a version of its number, and clean-up had removed that one. Then it is not the
    newest version (`newest` is, if the caller knows it), and the version after it was not made from it. Another writer
    may still build on it, so nothing may be deleted.
    """
    if committer.remembers_removed:
        return
    try:
        newest = _newest(committer, transaction, made) if newest is None else newest
        if newest is None or newest <= made.version or _has_descendant(store, committer, made, before):
            return
    except CommitStateUnknown:
        raise
    except LanceOpsError:
        return  # the version is committed, and a check that fails is no evidence against it
    raise CommitStateUnknown(
        transaction.uuid,
        made.version,
        f"a version of that number existed before and was cleaned up during the commit; the newest is {newest}",
    )


def _newest(committer: Committer, transaction: Transaction, made: Manifest) -> int | None:
    try:
        return committer.latest()
    except CorruptFile as error:  # names of both schemes: nobody can open the dataset
        if made.version > 1:
            raise
        reason = f"another writer has made a first version, too: {error}; remove the one that should not count"
        raise CommitStateUnknown(transaction.uuid, made.version, reason) from error


def is_made_in_same_dataset(store: Store, committer: Committer, made: Manifest, before: Manifest) -> bool:
    """Return whether `made` is in the dataset of `before`, and not in one created under its name after the last check.

    True also if this cannot be told: the version is committed, and a check that fails is no evidence against it.
    """
    try:
        return before.version == 0 or was_made_in_same_dataset(store, committer, made, before)
    except LanceOpsError:
        return True


def check_made_in_same_dataset(
    store: Store, committer: Committer, transaction: Transaction, made: Manifest, in_same_dataset: Callable[[], bool]
) -> None:
    """Raise if `made` is in another dataset than it was made for; see `is_made_in_same_dataset`.

    Withdraws `made` in this case and raises `IncompatibleTransaction`. If another writer has already built on it, or
    this cannot be checked, it stays and `CommitStateUnknown` is raised: people must decide which data counts.
    """
    if in_same_dataset():
        return
    if not _withdraw(store, committer, made):
        reason = "the dataset was removed during the commit, and our version is in another one created in its place"
        raise CommitStateUnknown(transaction.uuid, made.version, reason)
    raise dataset_replaced_error(store, transaction.operation.name)


def _withdraw(store: Store, committer: Committer, made: Manifest) -> bool:
    """Remove the version `made`, unless another writer may have built on it; return whether it is gone."""
    try:
        if committer.latest() not in (None, made.version):
            return False
        if not _is_replaced(store, committer, made):
            committer.withdraw(made.version)
    except LanceOpsError:
        return False
    return True


def _is_replaced(store: Store, committer: Committer, made: Manifest) -> bool:
    """Return whether the version of the number of `made` is another writer's."""
    try:
        found = read_manifest(store, committer, made.version)
    except VersionNotFound:
        return False  # the removal of the dataset deleted the manifest, but a manifest store may still have its entry
    return found.transaction_file != made.transaction_file


def _has_descendant(store: Store, committer: Committer, made: Manifest, before: Manifest) -> bool:
    try:
        after = read_version(store, committer, made.version + 1)
    except VersionNotFound:
        return False
    return descends_from(after, made, before, partial(read_manifest, store, committer))

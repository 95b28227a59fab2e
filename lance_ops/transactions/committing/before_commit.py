"""Check, before a commit, that the version it was planned on is still there and in the same dataset."""

from __future__ import annotations

from lance_ops.committers import Committer
from lance_ops.core.errors import (
    DatasetNotFound,
    IncompatibleTransaction,
    InvalidInput,
    LanceOpsError,
    RetryableConflict,
    VersionNotFound,
)
from lance_ops.core.file_names import is_detached
from lance_ops.store import Store
from lance_ops.table import Manifest
from lance_ops.transactions.committed import is_same_dataset, read_manifest, share_data_file
from lance_ops.transactions.next_version import NO_TABLE
from lance_ops.transactions.transaction import Transaction

__all__ = ["check_has_next", "check_same_dataset", "dataset_replaced_error", "planned_manifest"]


def planned_manifest(
    store: Store, committer: Committer, transaction: Transaction, base: Manifest | None, latest: int
) -> Manifest:
    """Return the manifest of the transaction's read version, which is `base` if the caller has it.

    `latest` is the newest version, 0 if there is none. Raises `RetryableConflict` if the read version was cleaned up,
    `DatasetNotFound` if there is no version at all, and `IncompatibleTransaction` if another dataset is there.
    """
    read_version = transaction.read_version
    if read_version == 0:
        return NO_TABLE
    try:
        if base is None or base.version != read_version:
            return read_manifest(store, committer, read_version)
        is_there = read_version == latest or committer.as_listed(read_version) is not None
        if not is_there and not committer.exists(read_version):
            raise VersionNotFound(f"version {read_version} is gone")
    except VersionNotFound as error:
        raise _planned_version_is_gone(store, transaction, latest) from error
    return base


def check_same_dataset(
    store: Store, committer: Committer, transaction: Transaction, planned: Manifest, newest: Manifest
) -> None:
    """Raise if the dataset of the version `planned` was removed, also if another one was created under its name."""
    if planned.version == 0:
        return
    try:
        if is_same_dataset(store, committer, planned):
            return
    except VersionNotFound as error:
        if planned.version < newest.version and share_data_file(planned, newest):
            return  # clean-up removed it after the versions behind it were read
        raise _planned_version_is_gone(store, transaction, committer.latest()) from error
    raise dataset_replaced_error(store, transaction.operation.name)


def check_has_next(store: Store, newest: Manifest) -> None:
    """Raise `InvalidInput` if the number after that of `newest` is a detached version's, which no reader lists."""
    if is_detached(newest.version + 1):
        raise InvalidInput(
            f"{store.uri}: no version can follow version {newest.version}, because greater numbers are those of "
            "detached versions: deep_clone an older version into a new dataset"
        )


def dataset_replaced_error(store: Store, work: str) -> IncompatibleTransaction:
    """Return the error for a dataset that was removed, and replaced by another one under its name."""
    return IncompatibleTransaction(
        f"{store.uri}: the dataset that {work} was planned on was removed, and another one was created in its place: "
        "open it again"
    )


def _planned_version_is_gone(store: Store, transaction: Transaction, latest: int | None) -> LanceOpsError:
    if not latest:
        return DatasetNotFound(f"no Lance dataset at {store.uri}")
    if transaction.read_version > latest:  # clean-up keeps the newest version
        return dataset_replaced_error(store, transaction.operation.name)
    return RetryableConflict(
        f"{store.uri}: version {transaction.read_version}, which {transaction.operation.name} was planned on, was "
        "cleaned up: plan it again on the newest version"
    )

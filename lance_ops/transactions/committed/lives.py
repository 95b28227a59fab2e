"""Tell a dataset from another that was begun under its name after it was removed.

A version is known by its transaction, which has a file of its own. That goes before the version does when a dataset is
removed, and after it when it is cleaned up: while it is there, so is the dataset that was read. Without the file the
manifest tells, and where that was cleaned up, whether anything that both versions share is gone.
"""

from __future__ import annotations

from enum import Enum

from lance_ops.committers import Committer
from lance_ops.core.errors import LanceOpsError, VersionNotFound
from lance_ops.core.names import DATA_DIR, TRANSACTIONS_DIR
from lance_ops.store import Store
from lance_ops.table import Manifest
from lance_ops.transactions.committed.committed_versions import read_manifest

__all__ = ["Landing", "lives_on", "see_home", "share_files"]


def lives_on(store: Store, committer: Committer, known: Manifest) -> bool:
    """Return whether a version is still the one that was read; raise `VersionNotFound` if there is none of its number.

    If it is, so was everything that was read of the dataset in between.
    """
    if _has_transaction(store, known):
        return True
    found = read_manifest(store, committer, known.version)
    return (found.transaction_file, found.timestamp_ns) == (known.transaction_file, known.timestamp_ns)


def share_files(one: Manifest, other: Manifest) -> bool:
    """Return whether two versions name the same data file: names are random, so no other dataset's version does."""
    ids = set(one.fragments.ids) & set(other.fragments.ids)
    names = {file.path for fragment in one.fragments.having(ids) for file in fragment.files}
    return any(file.path in names for fragment in other.fragments.having(ids) for file in fragment.files)


class Landing(Enum):
    """What became of a version that was made just now."""

    AT_HOME = "it follows the version that it was made of"
    TAKEN_BACK = "it was in another dataset, and is in none any more"
    OUT_OF_REACH = "it is in another dataset, and others may have built on it"


def see_home(store: Store, committer: Committer, made: Manifest, before: Manifest) -> Landing:
    """See that a version that was `made` of `before` is in the same dataset, and take it back if it is not.

    Somebody who builds on it first makes it stay: it is for people to say then what counts.
    """
    try:
        if before.version == 0 or not _is_astray(store, committer, made, before):
            return Landing.AT_HOME
    except LanceOpsError:
        return Landing.AT_HOME  # it is committed, and what could not be asked now is no reason to doubt it
    try:
        if committer.latest() not in (None, made.version):
            return Landing.OUT_OF_REACH
        if not _is_anothers(store, committer, made):
            committer.withdraw(made.version)
    except LanceOpsError:
        return Landing.OUT_OF_REACH
    return Landing.TAKEN_BACK


def _is_astray(store: Store, committer: Committer, made: Manifest, before: Manifest) -> bool:
    """Return whether the dataset that `before` was of is gone.

    Clean-up may take `before` as soon as ours is there, but neither our transaction nor files that ours names.
    """
    try:
        return not lives_on(store, committer, before)
    except VersionNotFound:
        return not (_has_transaction(store, made) and _has_old_file(store, made, before))


def _is_anothers(store: Store, committer: Committer, made: Manifest) -> bool:
    try:
        found = read_manifest(store, committer, made.version)
    except VersionNotFound:
        return False  # who removed the dataset took its manifest, but perhaps not what a manifest store says of it
    return found.transaction_file != made.transaction_file


def _has_transaction(store: Store, manifest: Manifest) -> bool:
    return bool(manifest.transaction_file) and store.exists(f"{TRANSACTIONS_DIR}/{manifest.transaction_file}")


def _has_old_file(store: Store, made: Manifest, before: Manifest) -> bool:
    """Return whether a file beneath the root that both versions name is there; true if there is no such."""
    shared = before.fragments.having(set(made.fragments.ids) & set(before.fragments.ids))
    names = {file.path for fragment in shared for file in fragment.files if file.base_id is None}
    for fragment in made.fragments.having({fragment.id for fragment in shared}):
        for file in fragment.files:
            if file.base_id is None and file.path in names:
                return store.exists(f"{DATA_DIR}/{file.path}")
    return True

"""Find the version that a transaction or a token made, to resolve a commit whose outcome was unknown.

Only a version in the table's history counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lance_ops.committers import Committer
from lance_ops.core.errors import CommitStateUnknown
from lance_ops.store import Store
from lance_ops.transactions.committed.committed_versions import CommittedVersion, read_manifest, versions_newest_first
from lance_ops.transactions.committed.same_history import is_in_history
from lance_ops.transactions.committed.tokens import TOKEN, load_token_version
from lance_ops.transactions.transaction import StoredTransaction

__all__ = ["find_token", "find_transaction"]


def find_transaction(store: Store, committer: Committer, uuid: str, *, since: int = 1) -> int | None:
    """Return the version that a transaction made, searching the retained versions from the newest to `since`.

    This resolves a `CommitStateUnknown`: once the store answers and some minutes have passed, None means that it was
    not committed. Raises `CommitStateUnknown` if clean-up removed the evidence whether the version found counts.
    """
    return _find(store, committer, lambda stored: stored.uuid == uuid, since)


def find_token(store: Store, committer: Committer, token: str) -> int | None:
    """Return the version that has a token, even if clean-up removed it; None if the work was never committed.

    Raises `CommitStateUnknown` as `find_transaction` does, unless the token was saved.
    """
    try:
        found = _find(store, committer, lambda stored: stored.properties.get(TOKEN) == token, 1)
    except CommitStateUnknown:
        saved = load_token_version(store, token)
        if saved is None:
            raise
        return saved
    return load_token_version(store, token) if found is None else found


def _find(store: Store, committer: Committer, wanted: Callable[[StoredTransaction], bool], since: int) -> int | None:
    after: CommittedVersion | None = None
    for committed in versions_newest_first(store, committer, down_to=since):
        stored = committed.stored_transaction
        if stored is not None and wanted(stored):
            match is_in_history(committed, after, partial(read_manifest, store, committer)):
                case True:
                    return committed.version
                case None:
                    raise CommitStateUnknown(
                        stored.uuid,
                        committed.version,
                        "clean-up removed the evidence whether it counts",
                    )
        after = committed
    return None

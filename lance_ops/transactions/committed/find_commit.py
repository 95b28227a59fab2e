"""Find the version that a transaction or a token made: what became of a commit whose outcome was unknown.

A version that is found counts only if it is in the table's history.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lance_ops.committers import Committer
from lance_ops.core.errors import CommitStateUnknown
from lance_ops.store import Store
from lance_ops.transactions.committed.committed_versions import CommittedVersion, read_manifest, versions_newest_first
from lance_ops.transactions.committed.same_history import is_in_history
from lance_ops.transactions.committed.tokens import load_token_version, token_of
from lance_ops.transactions.transaction import Transaction

__all__ = ["find_token", "find_transaction"]


def find_transaction(store: Store, committer: Committer, uuid: str, *, since: int = 1) -> int | None:
    """Return the version that a transaction made, looking through the retained versions from the newest to `since`.

    This resolves a `CommitStateUnknown`: None, once the store answers and some minutes have passed, means that it did
    not land. Raises `CommitStateUnknown` where clean-up left nothing to tell by whether a version counts.
    """
    return _find(store, committer, lambda transaction: transaction.uuid == uuid, since)


def find_token(store: Store, committer: Committer, token: str) -> int | None:
    """Return the version that carries a token, retained or removed since; None if the work was never committed.

    Raises as `find_transaction` does.
    """
    found = _find(store, committer, lambda transaction: token_of(transaction) == token, 1)
    return load_token_version(store, token) if found is None else found


def _find(store: Store, committer: Committer, wanted: Callable[[Transaction], bool], since: int) -> int | None:
    after: CommittedVersion | None = None
    for landed in versions_newest_first(store, committer, down_to=since):
        if landed.transaction is not None and wanted(landed.transaction):
            match is_in_history(landed, after, partial(read_manifest, store, committer)):
                case True:
                    return landed.version
                case None:
                    raise CommitStateUnknown(
                        landed.transaction.uuid, landed.version, "what would tell whether it counts was cleaned up"
                    )
        after = landed
    return None

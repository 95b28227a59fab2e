"""Find the version that a transaction or a token made: what became of a commit whose outcome was unknown.

A request that everybody gave up can arrive late. If the version that it was for had been made by another and cleaned up
since, it makes that version anew: a ghost, which no later version grew out of. So a version that is found counts only
if it is the newest, or the next one is what its transaction makes of it.
"""

from __future__ import annotations

from collections.abc import Callable

from lance_ops.committers.contract import Committer
from lance_ops.core.errors import CommitStateUnknown, LanceOpsError, VersionNotFound
from lance_ops.store.contract import Store
from lance_ops.transactions.landed import Landed, newest_first, read_manifest
from lance_ops.transactions.next_manifest import next_manifest
from lance_ops.transactions.operation import Context
from lance_ops.transactions.tokens import kept_token, token_of
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
    return kept_token(store, token) if found is None else found


def _find(store: Store, committer: Committer, wanted: Callable[[Transaction], bool], since: int) -> int | None:
    after: Landed | None = None
    for landed in newest_first(store, committer, down_to=since):
        if (
            landed.transaction is not None
            and wanted(landed.transaction)
            and (after is None or _grew_from(store, committer, landed, landed.transaction, after))
        ):
            return landed.version
        after = landed
    return None


def _grew_from(store: Store, committer: Committer, before: Landed, transaction: Transaction, after: Landed) -> bool:
    """Return whether the retained version `after` another one, made by `transaction`, came out of it."""
    unknown = CommitStateUnknown(
        transaction.uuid, before.version, f"what came between it and version {after.version} was cleaned up"
    )
    theirs = after.transaction
    if after.version != before.version + 1 or theirs is None:
        raise unknown
    try:
        needed = {version: read_manifest(store, committer, version) for version in theirs.operation.needed_versions}
    except VersionNotFound as error:
        raise unknown from error
    context = Context(needed, after.manifest.data_format.version, after.manifest.uses_stable_row_ids)
    try:
        made = next_manifest(before.manifest, theirs, context, after.manifest.timestamp_ns or 0)
    except LanceOpsError:
        return False
    return made.fragments == after.manifest.fragments and made.max_fragment_id == after.manifest.max_fragment_id

"""Find the version that a transaction or a token made, to resolve a commit whose outcome was unknown.

Only a version in the table's history counts.
"""

from __future__ import annotations

from functools import partial

from lance_ops.committers import Committer
from lance_ops.core.errors import CommitStateUnknown
from lance_ops.store import Store
from lance_ops.transactions.committed.committed_versions import CommittedVersion, read_manifest, versions_newest_first
from lance_ops.transactions.committed.same_history import is_in_history, version_set_back_to
from lance_ops.transactions.committed.tokens import load_token_version, token_of

__all__ = ["find_token", "find_transaction"]


def find_transaction(store: Store, committer: Committer, uuid: str, *, since: int = 1) -> int | None:
    """Return the version that a transaction made, searching the retained versions from the newest to `since`.

    This resolves a `CommitStateUnknown`: once the store answers and some minutes have passed, None means that it was
    not committed. Raises `CommitStateUnknown` if clean-up removed the evidence whether the version found counts.
    """
    after: CommittedVersion | None = None
    for committed in versions_newest_first(store, committer, down_to=since):
        stored = committed.stored_transaction
        if stored is not None and stored.uuid == uuid and _is_in_history(store, committer, committed, after):
            return committed.version
        after = committed
    return None


def find_token(store: Store, committer: Committer, token: str) -> int | None:
    """Return the version that has a token and whose work is still in the table, even if clean-up removed the version.

    None if the work was never committed, or if a restore or an overwrite took it out since: then it may be done again.
    A restore or an overwrite is seen while its own version is retained. Raises `CommitStateUnknown` as
    `find_transaction` does, unless the token was saved, and if clean-up removed the evidence whether a restore or an
    overwrite after the version counts.
    """
    undoing = _Undoing(store, committer)
    after: CommittedVersion | None = None
    for committed in versions_newest_first(store, committer):
        if token_of(committed) == token and undoing.leaves(committed.version):
            try:
                if _is_in_history(store, committer, committed, after):
                    return committed.version
            except CommitStateUnknown:
                if load_token_version(store, token) is None:
                    raise
                break
        undoing.note(committed, after)
        after = committed
    saved = load_token_version(store, token)
    return saved if saved is not None and undoing.leaves(saved) else None


class _Undoing:
    """What the restores and overwrites of a table leave in it. Versions are noted from the newest on."""

    def __init__(self, store: Store, committer: Committer) -> None:
        self._store, self._committer = store, committer
        self._taken_out: list[range] = []
        """For each restore or overwrite, the versions between the one that it set the table back to and its own."""
        self._perhaps_taken_out: list[tuple[range, CommitStateUnknown]] = []
        """The same ranges, for a restore or overwrite that may be stray."""

    def note(self, committed: CommittedVersion, after: CommittedVersion | None) -> None:
        """Note a version; `after` is the next retained one, None for the newest version."""
        back_to = version_set_back_to(committed)
        if back_to is None or self._took_out(committed.version):
            return
        between = range(back_to + 1, committed.version)
        try:
            if _is_in_history(self._store, self._committer, committed, after):
                self._taken_out.append(between)
        except CommitStateUnknown as doubt:
            self._perhaps_taken_out.append((between, doubt))

    def leaves(self, version: int) -> bool:
        """Return whether what a version did is still in the table; raise `CommitStateUnknown` in doubt."""
        if self._took_out(version):
            return False
        for between, doubt in self._perhaps_taken_out:
            if version in between:
                raise doubt
        return True

    def _took_out(self, version: int) -> bool:
        return any(version in between for between in self._taken_out)


def _is_in_history(
    store: Store, committer: Committer, committed: CommittedVersion, after: CommittedVersion | None
) -> bool:
    """Return whether a version is in the table's history; raise `CommitStateUnknown` if the evidence is removed."""
    found = is_in_history(committed, after, partial(read_manifest, store, committer))
    if found is None:
        stored = committed.stored_transaction
        raise CommitStateUnknown(
            "" if stored is None else stored.uuid, committed.version, "clean-up removed the evidence whether it counts"
        )
    return found

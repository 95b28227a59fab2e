"""Remove the manifests of a plan's old versions.

    remove_old_versions(snapshot, plan, pace) -> RemovedVersions, one for each batch of versions

Tags, pins and branches are read before a batch and after it. A version that one of them holds by then is kept, or put
back: the reference reads no announced removals, so it may tag a version while clean-up removes it.

A version whose transaction has a token must not become unrecognisable: a retry with the same token would commit again.
The token is written down before the version is removed. It is also written before the next version is removed, because
that version proves that the table's history produced this one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice

import pyarrow as pa

from lance_ops.committers import Committer
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import StoreError, VersionNotFound
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.maintenance.cleanup.cleanup_plan import (
    CleanupPlan,
    begin_tagged_or_pinned_versions,
    branch_start_versions,
)
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from lance_ops.maintenance.cleanup.paced_deletes import Pace
from lance_ops.refs import list_branches, reference_store
from lance_ops.snapshot import Snapshot
from lance_ops.table import Manifest
from lance_ops.transactions import (
    CommittedVersion,
    decode_version,
    is_in_history,
    may_have_token,
    read_manifest,
    save_token,
    token_of,
)

__all__ = ["OldVersion", "RemovedVersions", "begin_protected_versions", "remove_old_versions"]

_VERSIONS_AT_ONCE = 64
_READ_AHEAD, _REMOVED_AT_ONCE = 8, 16

_BegunRead = tuple[int, Callable[[], pa.Buffer]]
"""A version, and what waits for its manifest's bytes."""


@dataclass(frozen=True, eq=False)
class OldVersion:
    """A version as it was read before its removal, with the bytes of its manifest to put it back.

    The plan has decoded the manifest before. It is decoded again only where that matters: if the version may have a
    token, and if its files must stay.
    """

    snapshot: Snapshot
    number: int
    location: str
    data: pa.Buffer

    @cached_property
    def committed(self) -> CommittedVersion:
        """The decoded version."""
        return decode_version(self.snapshot.store, self.snapshot.committer, self.number, self.data)

    @property
    def manifest(self) -> Manifest:
        """The version's manifest."""
        return self.committed.manifest


@dataclass(frozen=True, eq=False)
class RemovedVersions:
    """What became of a batch of old versions: removed, not removable for now, or kept because somebody holds them.

    Versions that another clean-up had removed already are in none of them.
    """

    removed: tuple[OldVersion, ...] = ()
    failed: tuple[OldVersion, ...] = ()
    kept: tuple[OldVersion, ...] = ()

    @property
    def remaining(self) -> tuple[OldVersion, ...]:
        """The versions whose files must stay."""
        return self.failed + self.kept


def remove_old_versions(snapshot: Snapshot, plan: CleanupPlan, pace: Pace) -> Iterator[RemovedVersions]:
    """Remove the plan's old versions in batches, so that few manifests are in memory, and yield each batch's outcome.

    Announce the removal first (`announced_removal`).
    """
    gone: frozenset[int] = frozenset()
    for at in range(0, len(plan.old_versions), _VERSIONS_AT_ONCE):
        batch = plan.old_versions[at : at + _VERSIONS_AT_ONCE]
        outcome = _put_back_protected(snapshot, plan, _remove_batch(snapshot, plan, batch, gone, pace))
        gone = frozenset(old.number for old in outcome.removed)
        yield outcome


def _protected_versions(snapshot: Snapshot, plan: CleanupPlan) -> dict[int, str]:
    """Return the versions that a tag, a pin or a branch needs at this moment, with the name of one such each."""
    return begin_protected_versions(snapshot, plan)()


def begin_protected_versions(snapshot: Snapshot, plan: CleanupPlan) -> Callable[[], dict[int, str]]:
    """Begin to look for the versions that are protected; return a function that waits for them."""
    branches = snapshot.store.begin_call(partial(list_branches, reference_store(snapshot)))
    tagged_or_pinned = begin_tagged_or_pinned_versions(snapshot, plan.options)

    def finish() -> dict[int, str]:
        held = tagged_or_pinned(plan.planned_at)
        starts = branch_start_versions(snapshot, branches())
        return held | (starts if plan.options.keep_branch_starts else {})

    return finish


def _remove_batch(
    snapshot: Snapshot, plan: CleanupPlan, batch: Sequence[int], gone: AbstractSet[int], pace: Pace
) -> RemovedVersions:
    """Remove some versions. The batch before removed the versions `gone`, whose tokens are written down."""
    numbers = iter(batch)
    first_reads = deque(_begin_reads(snapshot, numbers, _READ_AHEAD))  # beside the look for tags, pins and branches
    protected = _protected_versions(snapshot, plan)
    kept: list[OldVersion] = []
    removed: list[OldVersion] = []
    failed: list[OldVersion] = []
    begun: deque[tuple[OldVersion, Callable[[], bool]]] = deque()
    at_once = 1 if pace.is_set or snapshot.store.reads_in_place else _REMOVED_AT_ONCE

    def finish() -> None:
        old, is_removed = begun.popleft()
        (removed if is_removed() else failed).append(old)

    has_token: set[int] = set()  # versions whose token was written down before their removal began
    for old, previous in _with_previous(snapshot, first_reads, numbers, gone):
        if old.number in protected:
            kept.append(old)
            continue
        if previous is not None and previous.number not in has_token:
            # `old` is the only proof that the table's history produced `previous`
            _keep_token(previous, next_version=old)
        _keep_token(old)
        has_token.add(old.number)
        pace.wait()
        begun.append((old, snapshot.store.begin_call(partial(_is_removed, snapshot.committer, old.number))))
        if len(begun) == at_once:
            finish()
    while begun:
        finish()
    return RemovedVersions(tuple(removed), tuple(failed), tuple(kept))


def _with_previous(
    snapshot: Snapshot, begun: deque[_BegunRead], numbers: Iterator[int], gone: AbstractSet[int]
) -> Iterator[tuple[OldVersion, OldVersion | None]]:
    """Yield each version that exists, and the version before it: as this loop read it, or as it is in the store.

    The versions are those whose reading has begun, and then `numbers`.
    A version that is `gone` is not asked for: to find out that a version is missing takes a listing of all versions.
    A version is read just before it is yielded, or few versions before in a remote store, since another clean-up may
    remove it at any time.
    """
    previous: OldVersion | None = None
    while begun:
        number, read = begun.popleft()
        begun.extend(_begin_reads(snapshot, numbers, 1))
        try:
            old = OldVersion(snapshot, number, snapshot.committer.location(number), read())
        except VersionNotFound:  # another clean-up removed it
            continue
        if previous is None or previous.number != number - 1:
            previous = None if number - 1 in gone else _read_if_exists(snapshot, number - 1)
        yield old, previous
        previous = old


def _begin_reads(snapshot: Snapshot, numbers: Iterator[int], at_most: int) -> Iterator[_BegunRead]:
    for number in islice(numbers, at_most):
        yield number, snapshot.store.begin_call(partial(snapshot.committer.read, number))


def _put_back_protected(snapshot: Snapshot, plan: CleanupPlan, outcome: RemovedVersions) -> RemovedVersions:
    """Put the versions back that somebody holds since, in ascending order; return what is removed for good.

    If another clean-up deleted files of such a version meanwhile, the version is removed again: it must not have holes.
    """
    protected = _protected_versions(snapshot, plan)
    for old in outcome.removed:
        if old.number not in protected:
            continue
        snapshot.store.put_if_absent(old.location, old.data)
        if _has_its_files(snapshot, old.manifest):
            removed = tuple(other for other in outcome.removed if other is not old)
            outcome = replace(outcome, removed=removed, kept=(*outcome.kept, old))
        else:
            snapshot.committer.remove(old.number)
    return outcome


def _has_its_files(snapshot: Snapshot, manifest: Manifest) -> bool:
    """Return whether the version's data and deletion files exist.

    A clean-up that deletes one of them later looks for this version afterwards, and finds it.
    """
    named = NamedFiles(snapshot.uri)
    named.add(manifest)
    directories = (f"{DATA_DIR}/", f"{DELETIONS_DIR}/")
    existing = (info.path for directory in directories for info in snapshot.store.list(directory[:-1]))
    return {path for path in named.paths if path.startswith(directories)}.issubset(existing)


def _keep_token(version: OldVersion, next_version: OldVersion | None = None) -> None:
    """Write down the token of a version if it has one and `next_version` grew from it; by default the one after it.

    If the next version does not exist, the clean-up that removed it wrote the token down. A version that appeared under
    this number since then is a stray version, and its token counts for nothing.
    """
    if not may_have_token(version.data, version.location) or token_of(version.committed) is None:
        return
    snapshot = version.snapshot
    grown = next_version or _read_if_exists(snapshot, version.number + 1)
    read = partial(read_manifest, snapshot.store, snapshot.committer)
    if grown is not None and is_in_history(version.committed, grown.committed, read):
        save_token(snapshot.store, version.committed)


def _read_if_exists(snapshot: Snapshot, version: int) -> OldVersion | None:
    if version < 1:
        return None
    with suppress(VersionNotFound):
        data = snapshot.committer.read(version)
        return OldVersion(snapshot, version, snapshot.committer.location(version), data)
    return None


def _is_removed(committer: Committer, version: int) -> bool:
    """Remove a version; return whether it certainly does not exist any more."""
    with suppress(StoreError):
        committer.remove(version)
        return True
    with suppress(StoreError):
        return not committer.exists(version)
    return False

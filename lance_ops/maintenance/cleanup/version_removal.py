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
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice

import pyarrow as pa

from lance_ops.committers import Committer
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import DatasetNotFound, StoreError, VersionNotFound
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.core.threads import map_ordered
from lance_ops.core.tricks import Trick
from lance_ops.maintenance.cleanup.cleanup_plan import (
    CleanupPlan,
    HeldVersions,
    begin_held_versions,
)
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from lance_ops.maintenance.cleanup.paced_deletes import Pace, delete_in_place
from lance_ops.maintenance.cleanup.shared_work import cut
from lance_ops.snapshot import Snapshot
from lance_ops.table import Manifest
from lance_ops.transactions import (
    CommittedVersion,
    dataset_replaced_error,
    decode_version,
    is_in_history,
    is_same_dataset,
    may_have_token,
    read_manifest,
    save_token,
    token_of,
)

__all__ = [
    "OldVersion",
    "RemovedVersions",
    "begin_protected_versions",
    "check_same_dataset",
    "remove_old_versions",
]

_VERSIONS_AT_ONCE = 64
_IN_PLACE_AT_ONCE = 1024
"""Long manifests of a local store are mapped, so that a batch of them takes no memory of its own.

A batch is shorter where this does not hold, and where its removal takes long: then nobody looks for tags meanwhile.
"""
_READ_AHEAD, _REMOVED_AT_ONCE = 16, 16
"""A remote read or removal is mostly a wait, and more of them at once would crowd out other requests."""


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
    is_quick = snapshot.store.reads_in_place and not pace.is_set
    size = _IN_PLACE_AT_ONCE if is_quick and Trick.FILE_MAPPING.is_on() else _VERSIONS_AT_ONCE
    for batch in cut(plan.old_versions, size):
        outcome = _put_back_protected(snapshot, plan, _remove_batch(snapshot, plan, batch, gone, pace))
        gone = frozenset(old.number for old in outcome.removed)
        yield outcome


def check_same_dataset(snapshot: Snapshot) -> None:
    """Raise `IncompatibleTransaction` if the snapshot's dataset was removed and another one created under its name.

    Numbers of versions mean nothing in the other one. If the snapshot's version is gone and there are later versions,
    another clean-up has removed it from the same dataset.
    """
    store, committer = snapshot.store, snapshot.committer
    try:
        is_same = is_same_dataset(store, committer, snapshot.manifest)
    except VersionNotFound:
        latest = committer.latest()
        if latest is None:
            raise DatasetNotFound(f"no Lance dataset at {snapshot.uri}") from None
        is_same = latest > snapshot.version
    if not is_same:
        raise dataset_replaced_error(store, "this clean-up")


def _protected_versions(snapshot: Snapshot, plan: CleanupPlan) -> HeldVersions:
    """Return the versions that a tag, a pin or a branch needs at this moment."""
    return begin_protected_versions(snapshot, plan)()


def begin_protected_versions(snapshot: Snapshot, plan: CleanupPlan) -> Callable[[], HeldVersions]:
    """Begin to look for the versions that are protected; return a function that waits for them."""
    return partial(begin_held_versions(snapshot, plan.options), plan.planned_at)


def _remove_batch(
    snapshot: Snapshot, plan: CleanupPlan, batch: Sequence[int], gone: AbstractSet[int], pace: Pace
) -> RemovedVersions:
    """Remove some versions, after the tokens of all of them are written down.

    The batch before removed the versions `gone`, whose tokens are written down too. The check for the same dataset
    comes after the reads, so that it holds for all versions that were read.
    """
    reads = _begin_reads(snapshot, batch)  # beside the look for tags, pins and branches
    protected = _protected_versions(snapshot, plan)
    kept: list[OldVersion] = []
    removable: list[OldVersion] = []
    has_token: set[int] = set()  # versions whose token was written down before their removal began
    for old, previous in _with_previous(snapshot, reads, gone):
        if old.number in protected:
            kept.append(old)
            continue
        if previous is not None and previous.number not in has_token:
            # `old` is the only proof that the table's history produced `previous`
            _keep_token(previous, next_version=old)
        _keep_token(old)
        has_token.add(old.number)
        removable.append(replace(old))  # without the decoded manifest, which takes far more memory than its bytes
    check_same_dataset(snapshot)
    is_removed = _remove_several(snapshot, [old.number for old in removable], pace, plan.options.delete_concurrency)
    removed = tuple(old for old in removable if is_removed[old.number])
    failed = tuple(old for old in removable if not is_removed[old.number])
    return RemovedVersions(removed, failed, tuple(kept))


def _remove_several(
    snapshot: Snapshot, versions: Sequence[int], pace: Pace, delete_concurrency: int | None
) -> dict[int, bool]:
    """Remove versions; return for each whether it certainly does not exist any more."""
    at_once = delete_concurrency or _REMOVED_AT_ONCE

    def remove(part: Sequence[int]) -> list[bool]:
        pace.wait()
        failed = set(part)
        with suppress(StoreError):
            failed = snapshot.committer.remove_several(part)
        return [version not in failed or _is_gone(snapshot.committer, version) for version in part]

    if snapshot.store.reads_in_place and not pace.is_set:
        outcomes = delete_in_place(remove, versions, pace, at_once)
    else:
        parts = cut(versions, 1 if pace.is_set else snapshot.store.deleted_at_once)
        workers = 1 if pace.is_set else min(at_once, len(parts))
        outcomes = map_ordered(remove, parts, workers, workers)
    return dict(zip(versions, chain.from_iterable(outcomes), strict=True))


def _with_previous(
    snapshot: Snapshot, reads: Iterable[tuple[int, pa.Buffer]], gone: AbstractSet[int]
) -> Iterator[tuple[OldVersion, OldVersion | None]]:
    """Yield each version that was read, and the version before it: as this loop read it, or as it is in the store.

    A version that is `gone` is not asked for: to find out that a version is missing takes a listing of all versions.
    """
    previous: OldVersion | None = None
    for number, data in reads:
        old = OldVersion(snapshot, number, snapshot.committer.location(number), data)
        if previous is None or previous.number != number - 1:
            previous = None if number - 1 in gone else _read_if_exists(snapshot, number - 1)
        yield old, previous
        previous = old


def _begin_reads(snapshot: Snapshot, versions: Iterable[int]) -> Iterator[tuple[int, pa.Buffer]]:
    """Return what yields the versions that exist, with their manifests' bytes; remote reads have begun then.

    A version is read few versions before it is yielded, since another clean-up may remove it at any time: at most 16 in
    a remote store, and those that `Committer.read_several` reads together on a disk.
    """
    committer, store = snapshot.committer, snapshot.store
    if store.reads_in_place:
        return committer.read_several(versions)
    numbers = iter(versions)
    begun = deque(
        (number, store.begin_call(partial(committer.read, number))) for number in islice(numbers, _READ_AHEAD)
    )

    def finish() -> Iterator[tuple[int, pa.Buffer]]:
        while begun:
            number, read = begun.popleft()
            begun.extend((n, store.begin_call(partial(committer.read, n))) for n in islice(numbers, 1))
            try:
                data = read()
            except VersionNotFound:  # another clean-up removed it
                continue
            yield number, data

    return finish()


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
    named.add(manifest, is_kept=False)
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


def _is_gone(committer: Committer, version: int) -> bool:
    """Return whether a version certainly does not exist any more."""
    with suppress(StoreError):
        return not committer.exists(version)
    return False

"""Announce the versions that a clean-up is about to remove, for at most `UNVERIFIED_AGE`; check versions against that.

    _lance_ops/removals/{uuid}.json      [2, 3, 5]

A clean-up writes the announcement before it reads tags and pins, and deletes it when the files that only these versions
name are deleted. A caller that wants to keep a version writes its tag or pin first, and then looks for announcements
and for the version. If the announcement is later than the tag, clean-up finds the tag. If it is earlier, the caller
finds the announcement and gives up. This holds for any number of clean-ups and callers.

An interrupted clean-up leaves its announcement, which counts for `UNVERIFIED_AGE`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from lance_ops.core.errors import CorruptFile, ObjectNotFound, VersionNotFound
from lance_ops.snapshot import Snapshot
from lance_ops.store import ObjectInfo
from lance_ops.transactions import PendingFiles

__all__ = [
    "REMOVALS_DIR",
    "UNVERIFIED_AGE",
    "announced_removal",
    "check_no_announced_removal",
    "check_version_is_kept",
    "is_mark_expired",
]

REMOVALS_DIR = "_lance_ops/removals"

UNVERIFIED_AGE = timedelta(days=7)
"""How long a file may belong to a process that is still running, by the store's clock."""


def is_mark_expired(info: ObjectInfo, now: datetime) -> bool:
    """Return whether a pin or an announcement no longer counts: the process that wrote it has crashed."""
    return now - info.modified > UNVERIFIED_AGE


@contextmanager
def announced_removal(snapshot: Snapshot, versions: Sequence[int]) -> Iterator[None]:
    """Announce the removal of these versions while the block runs; after an interrupt the announcement stays."""
    if not versions:
        yield
        return
    path = f"{REMOVALS_DIR}/{uuid.uuid4()}.json"
    note = PendingFiles.at(snapshot.store, [path])
    with note.abandoned_unless_committed():
        # It need not survive a power cut, which ends this clean-up: manifests go before files, so each version whose
        # manifest is left has its files.
        snapshot.store.put(path, json.dumps(versions).encode(), durable=False)
        yield
    note.abandon()


def check_version_is_kept(snapshot: Snapshot) -> None:
    """Raise `VersionNotFound` if the version is removed or announced to be; call this after tagging or pinning it."""
    check_no_announced_removal(snapshot)
    if not snapshot.committer.exists(snapshot.version):
        raise VersionNotFound(f"{snapshot.uri}: version {snapshot.version} was cleaned up")


def check_no_announced_removal(snapshot: Snapshot) -> None:
    """Raise `VersionNotFound` if the version's removal is announced.

    The caller must look for the version after this call. If it looked before, clean-up could remove the version and
    withdraw its announcement between the two steps.
    """
    for info in snapshot.store.list(REMOVALS_DIR):
        is_valid = not is_mark_expired(info, snapshot.store.now())
        if is_valid and snapshot.version in _announced_versions(snapshot, info.path):
            raise VersionNotFound(f"{snapshot.uri}: version {snapshot.version} is being cleaned up ({info.path})")


def _announced_versions(snapshot: Snapshot, path: str) -> frozenset[int]:
    try:
        versions = json.loads(snapshot.store.get(path).to_pybytes())
        return frozenset(int(version) for version in versions)
    except ObjectNotFound:
        return frozenset()  # that clean-up has finished
    except (ValueError, TypeError) as error:
        reason = f"not a list of versions: {error!r}"
        raise CorruptFile(snapshot.store.uri_of(path), "announced removal", reason) from error

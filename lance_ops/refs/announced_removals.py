"""Removals: the versions that clean-ups at work are about to remove.

    _lance_ops/removals/{uuid}.json      [2, 3, 5]

A clean-up notes them before it looks for tags and pins, and takes the note away when the files that only these versions
name are gone. Who wants a version to stay writes his tag or pin first, and then looks for notes and for the version. A
clean-up that notes it later finds the tag, and one that noted it before is found: then he who comes late gives way. How
many there are of either does not matter.

A clean-up that died leaves its note, which counts for as long as a file of an unknown writer does.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from lance_ops.core.errors import CorruptFile, ObjectNotFound, VersionNotFound
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import PendingFiles

__all__ = ["REMOVALS_DIR", "UNVERIFIED_AGE", "announced_removal", "check_version_is_kept"]

REMOVALS_DIR = "_lance_ops/removals"

UNVERIFIED_AGE = timedelta(days=7)
"""How long a file of somebody who may be at work counts, by the store's clock."""


@contextmanager
def announced_removal(snapshot: Snapshot, versions: Sequence[int]) -> Iterator[None]:
    """Say that these versions are about to go while the block runs; after an interrupt the note stays."""
    if not versions:
        yield
        return
    path = f"{REMOVALS_DIR}/{uuid.uuid4()}.json"
    note = PendingFiles.at(snapshot.store, [path])
    with note.abandoned_unless_committed():
        snapshot.store.put(path, json.dumps(versions).encode())
        yield
    note.abandon()


def check_version_is_kept(snapshot: Snapshot) -> None:
    """Raise `VersionNotFound` if clean-up took a version, or is about to: for who has just tagged or pinned it."""
    for info in snapshot.store.list(REMOVALS_DIR):
        counts = snapshot.store.now() - info.modified <= UNVERIFIED_AGE
        if counts and snapshot.version in _read(snapshot, info.path):
            raise VersionNotFound(f"{snapshot.uri}: version {snapshot.version} is being cleaned up ({info.path})")
    if not snapshot.committer.exists(snapshot.version):
        raise VersionNotFound(f"{snapshot.uri}: version {snapshot.version} was cleaned up")


def _read(snapshot: Snapshot, path: str) -> frozenset[int]:
    try:
        versions = json.loads(snapshot.store.get(path).to_pybytes())
        return frozenset(int(version) for version in versions)
    except ObjectNotFound:
        return frozenset()  # that clean-up is done
    except (ValueError, TypeError) as error:
        raise CorruptFile(snapshot.store.uri_of(path), "removal", f"not versions: {error!r}") from error

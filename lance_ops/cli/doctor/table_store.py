"""Examine the store of a dataset: whether it is reached, whether a commit is safe there, and its clock."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from lance_ops.cli.doctor.diagnosis import Diagnosis, Verdict
from lance_ops.committers import MANIFEST_STORE_OPTION, DatasetRoot, open_root
from lance_ops.core.errors import CorruptFile, LanceOpsError, StoreError, UnsafeStore
from lance_ops.store import TEMPORARY_PREFIX, Store, prove_conditional_create, with_short_timeouts
from lance_ops.transactions import read_manifest

__all__ = ["examine_root", "examine_store"]

_WARN_SECONDS, _FAIL_SECONDS = 30, 600
"""A difference of clocks beyond which settle times mislead, and one beyond which ages of files do."""


def examine_store(
    uri: str, storage_options: Mapping[str, str] | None, *, read_only: bool = False
) -> Iterator[Diagnosis]:
    """Yield what the store at a dataset's root can do. The dataset need not exist; nothing stays behind.

    With `read_only` nothing is written, and only what readers need is examined.
    """
    root = open_root(uri, with_short_timeouts(uri, storage_options))
    is_new = not read_only and not _folder(root.store).exists()
    try:
        yield from examine_root(root, read_only=read_only)
    finally:
        if is_new:
            _remove_folder(root.store)


def examine_root(root: DatasetRoot, *, read_only: bool = False) -> Iterator[Diagnosis]:
    """Yield findings on the newest version, on writing, on the clock and on commits; `read_only` only on the first."""
    store = root.store
    try:
        versions = root.committer.versions()
    except LanceOpsError as error:
        yield Diagnosis("dataset", Verdict.FAIL, str(error), "see the error; the store's options may be wrong")
        return
    yield _dataset(root, max(versions, default=None))
    if read_only:
        return
    try:
        yield _writing(store)
    except StoreError as error:
        remedy = "let these credentials write and delete beneath the dataset; if you only read it, give --read-only"
        yield Diagnosis("writing", Verdict.FAIL, str(error), remedy)
        return
    yield _clock(store)
    yield _commits(root)


def _dataset(root: DatasetRoot, newest: int | None) -> Diagnosis:
    if newest is None:
        return Diagnosis("dataset", Verdict.OK, f"{root.store.uri}: there is no dataset yet")
    try:
        read_manifest(root.store, root.committer, newest)
    except CorruptFile as error:
        remedy = f"run `lance-ops verify {root.store.uri}`, which names every damage, then `lance-ops repair`"
        return Diagnosis("dataset", Verdict.FAIL, str(error), remedy)
    except LanceOpsError as error:
        return Diagnosis("dataset", Verdict.FAIL, str(error), "see the error; readers cannot open the newest version")
    return Diagnosis("dataset", Verdict.OK, f"{root.store.uri}: version {newest}")


def _writing(store: Store) -> Diagnosis:
    key = f"{TEMPORARY_PREFIX}doctor.{uuid.uuid4().hex}"
    content = b"written by `lance-ops doctor`, which removes it"
    started = time.monotonic()
    store.put(key, content)
    took = time.monotonic() - started
    try:
        kept = store.get(key) == pa.py_buffer(content)
    finally:
        store.delete(key)
    if not kept:
        what = "an object that was just written is read with other bytes"
        return Diagnosis("writing", Verdict.FAIL, what, "use a store that is consistent after a write")
    return Diagnosis("writing", Verdict.OK, f"an object is written in {took * 1000:.0f} ms")


def _clock(store: Store) -> Diagnosis:
    before = datetime.now(UTC)
    try:
        theirs = store.now()
    except StoreError as error:
        return Diagnosis("clock", Verdict.WARN, str(error), "try again: clean-up goes by the store's clock")
    after = datetime.now(UTC)
    away = max((before - theirs).total_seconds(), (theirs - after).total_seconds(), 0.0)
    what = f"the store's differs from this machine's by {away:.0f} s"
    if away <= _WARN_SECONDS:
        return Diagnosis("clock", Verdict.OK, what)
    remedy = "synchronise this machine's clock (NTP): clean-up goes by the store's, schedules by this one's"
    return Diagnosis("clock", Verdict.FAIL if away > _FAIL_SECONDS else Verdict.WARN, what, remedy)


def _commits(root: DatasetRoot) -> Diagnosis:
    if MANIFEST_STORE_OPTION in root.storage_options:
        return Diagnosis("commits", Verdict.OK, "a manifest store decides who commits")
    try:
        prove_conditional_create(root.store)
    except UnsafeStore as error:
        what, _, remedy = str(error).partition("; ")
        return Diagnosis("commits", Verdict.FAIL, what, remedy or "commit through an external manifest store")
    except StoreError as error:
        return Diagnosis("commits", Verdict.WARN, str(error), "try again, or use a manifest store")
    proven = "a second create of one key was refused" if root.store.needs_proof else "the file system refuses a second"
    return Diagnosis("commits", Verdict.OK, f"of two writers of one version one wins: {proven}")


def _folder(store: Store) -> Path:
    """Return the folder of a store on this machine; for any other store, a path that does not exist."""
    return Path(store.uri)


def _remove_folder(store: Store) -> None:
    """Remove the empty folder of a store on this machine; an object store has none."""
    with suppress(OSError):  # there is none, or another writer has begun a dataset in it
        _folder(store).rmdir()

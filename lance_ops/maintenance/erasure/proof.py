"""Prove an erasure: read every remaining file, hash it, and look for the erased values in its bytes.

The rows of data files were searched by their values before, decoded. This reads the bytes of everything beneath the
root, manifests, transactions and older reports too, because an uncompressed value would show there. The values are
texts or bytes of the only column that the filter reads, or the keys of one such column; of other filters and keys none
is looked for. Values under 4 bytes are not looked for either, and of a filter only about the first 10,000 values that
each search task finds are. This process holds the values, and so does each worker process, with a hash table of them; a
task has their place alone. A writer that is at work,
or that died, leaves files that no version names. A whole data file of all columns is searched row by row, too; no other
such file is proven. A file in any other directory is not proven either: it may hold the rows in any form. In the
directories of small uncompressed files no name is checked: a compressed file there is searched as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import timedelta

import pyarrow as pa

from lance_ops.committers import open_root
from lance_ops.core.errors import ObjectNotFound, VersionNotFound
from lance_ops.core.file_names import (
    DATA_DIR,
    DELETIONS_DIR,
    INDICES_DIR,
    REFS_DIR,
    TRANSACTIONS_DIR,
    TREE_DIR,
    VERSIONS_DIR,
)
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.maintenance.cleanup import NamedFiles
from lance_ops.maintenance.erasure.byte_search import ByteSearch
from lance_ops.maintenance.erasure.report import ExaminedFile
from lance_ops.maintenance.erasure.searching import Holdings, Why, retained_and_detached_versions, search_unnamed
from lance_ops.maintenance.erasure.subject import SharedTable, shared
from lance_ops.refs import ERASURES_DIR
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import ObjectInfo, path_beneath

__all__ = ["Proof", "named_by_versions", "prove"]

_VALUE = "value"
_PART = 8 << 20
_BYTES_PER_TASK = 256 << 20
_NAMED = frozenset({DATA_DIR, DELETIONS_DIR, INDICES_DIR})
"""The directories whose files versions name."""
_SMALL_TEXT_DIRS = frozenset({VERSIONS_DIR, TRANSACTIONS_DIR, REFS_DIR, ERASURES_DIR.partition("/")[0]})
"""The directories of small uncompressed files, in which a value would show as it is."""
_LONGEST_WAIT = timedelta(hours=1)
"""How old a file without a version may be for another attempt to wait for its writer."""


@dataclass(frozen=True)
class ProofTask:
    """Files to read, and the values to look for."""

    uri: str
    storage_options: Mapping[str, str] = field(repr=False)
    paths: tuple[str, ...]
    values: SharedTable = field(repr=False)


@dataclass(frozen=True)
class ReadFile:
    """The hash of a file, and whether a value stands in it; a file that is gone has no hash."""

    path: str
    size_bytes: int
    sha256: str
    has_value: bool


@dataclass(frozen=True)
class Proof:
    """Every remaining file, what is not proven, how many values were looked for, and the data files that have one.

    It `waits_for_writers` if only young files that no version names, and versions that running work keeps with their
    files, are not proven.
    """

    files: tuple[ExaminedFile, ...]
    unproven: tuple[str, ...]
    num_values: int
    data_files_with_values: tuple[str, ...]
    waits_for_writers: bool


def prove(
    main: Snapshot, found: Holdings, own_paths: Collection[str], predicate: Predicate | None, runner: Runner
) -> Proof:
    """Examine every file beneath the root but those at `own_paths`, which the erasure makes or removes in the end.

    `predicate` finds the rows in data files that no version names; None if the main branch lacks its columns.
    """
    values = tuple(sorted(found.values))
    named, kept = named_by_versions(found, deletes_others=False), _kept_by_running_work(found)
    listed = [info for info in main.store.list() if info.path not in own_paths]
    now = main.store.now()
    young = {info.path for info in listed if now - info.modified < _LONGEST_WAIT}
    cuts = list(_cuts(listed))
    job = Job.on("prove the erasure in", main.uri, main.version)
    with shared(main, pa.table({_VALUE: pa.array(values, pa.large_binary())}), runner) as sought:
        options = dict(main.storage_options)
        tasks = [ProofTask(main.uri, options, tuple(info.path for info in cut), sought) for cut in cuts]
        outcomes = runner.map(_read_files, tasks, job.in_bytes(sum(info.size_bytes for info in cut) for cut in cuts))
    unnamed = [info.path for info in listed if _directory(info.path) == DATA_DIR and info.path not in named]
    stores_rows = {} if predicate is None else search_unnamed(main, predicate, unnamed, runner)
    files, unproven, data_files, waiting = [], [], [], set()
    for read in (each for outcome in outcomes for each in outcome):
        if not read.sha256:
            continue
        examined = "its bytes searched" if values else "its bytes hashed"
        directory = _directory(read.path)
        if directory == DATA_DIR:
            examined = f"searched row by row, {examined}"
        if directory in _NAMED and read.path not in named:
            stored = stores_rows.get(read.path)
            examined = f"named by no version, {examined}" if stored is False else "named by no version"
            if stored is not False:
                what = "it stores the rows, and no version names it" if stored else "no version names it"
                if read.path in young:
                    waiting.add(read.path)
                    whose = "it may be of a writer at work, or of one that crashed"
                else:
                    whose = "if no writer is at work, erase again and permit delete_unverified"
                unproven.append((read.path, f"{what}; {whose}"))
        if directory not in _NAMED | _SMALL_TEXT_DIRS and read.size_bytes:
            examined = "no file of the dataset"
            unproven.append((read.path, "it is no file of the dataset; look into it, and move or remove it"))
        if read.has_value:
            examined = "holds an erased value"
            if directory == DATA_DIR:
                data_files.append(read.path)
            remedy = _remedy(directory)
            if read.path in kept:
                waiting.add(read.path)
                remedy = ", and running work keeps a version that needs it"
            unproven.append((read.path, f"an erased value stands in its bytes{remedy}"))
        files.append(ExaminedFile(read.path, read.size_bytes, read.sha256, examined))
    for name, why, pin in _left(found):
        if pin:
            waiting.add(name)
        unproven.append(
            (name, f"running work keeps it ({pin}): erase again when it is done; {why}" if pin else str(why))
        )
    sentences = tuple(f"{name}: {why}" for name, why in unproven)
    waits = bool(waiting) and waiting.issuperset(name for name, _ in unproven)
    return Proof(tuple(files), sentences, len(values), tuple(data_files), waits)


def named_by_versions(found: Holdings, *, deletes_others: bool) -> NamedFiles:
    """Return the files beneath the root of the main branch that a retained or detached version names.

    A caller that `deletes_others` gets `UnsupportedFeature` for a version that this release may not write, because it
    may name further files.
    """
    named = NamedFiles(found.main.head.uri)
    for branch in found.branches:
        for committed in retained_and_detached_versions(branch.head):
            named.add(committed.manifest, branch.head.uri, is_kept=deletes_others)
    return named


def _kept_by_running_work(found: Holdings) -> NamedFiles:
    """Return the files of the versions that hold the rows and that running work keeps, with their manifests."""
    kept = NamedFiles(found.main.head.uri)
    for branch in found.branches:
        head = branch.head
        for version in branch.pins:
            with suppress(VersionNotFound):  # the work has ended, and a clean-up removed the version
                kept.add(head.at(version).manifest, head.uri, is_kept=False)
                kept.paths.add(path_beneath(kept.root, head.store.uri_of(head.committer.location(version))) or "")
    return kept


def _left(found: Holdings) -> Iterator[tuple[str, Why, str]]:
    """Yield what holds the rows, why, and the path of a pin that keeps it; "" if none does."""
    for branch in found.branches:
        for version, why in branch.holding.items():
            yield f"version {version} of {branch.name}", why, branch.pins.get(version, "")
    for version, why in found.detached.items():
        yield f"detached version {version}", why, ""


def _read_files(task: ProofTask) -> list[ReadFile]:
    store = open_root(task.uri, task.storage_options).store
    read, search = [], task.values.derived(_byte_search)
    for path in task.paths:
        digest, has_value, before = hashlib.sha256(), False, b""
        try:
            size = store.size(path)
            for start in range(0, size, _PART):
                part = store.get_range(path, start, min(start + _PART, size)).to_pybytes()
                digest.update(part)
                window = before + part
                has_value = has_value or search.finds_any_in(window)
                before = window[-(search.longest - 1) :] if search.longest > 1 else b""
        except ObjectNotFound:  # clean-up of another process removed it
            read.append(ReadFile(path, 0, "", False))
            continue
        read.append(ReadFile(path, size, digest.hexdigest(), has_value))
    return read


def _byte_search(values: pa.Table) -> ByteSearch:
    return ByteSearch(values.column(_VALUE).to_pylist())


def _cuts(infos: Sequence[ObjectInfo]) -> Iterator[list[ObjectInfo]]:
    cut: list[ObjectInfo] = []
    size = 0
    for info in infos:
        cut.append(info)
        size += info.size_bytes
        if size >= _BYTES_PER_TASK:
            yield cut
            cut, size = [], 0
    if cut:
        yield cut


def _directory(path: str) -> str:
    """Return which directory of a branch a file is in; "" for a file that is in none."""
    parts = path.split("/")[:-1]
    if parts[:1] == [TREE_DIR]:  # only the first segment of a branch's name can be that of a directory
        return next((part for part in parts[2:] if part in _NAMED | _SMALL_TEXT_DIRS), "")
    return parts[0] if parts else ""


def _remedy(directory: str) -> str:
    if directory == VERSIONS_DIR:
        return (
            ": change the config, metadata or column that states it, remove an older version that does, and erase again"
        )
    if directory == TRANSACTIONS_DIR:
        return ": if it means the subject, remove the version that this transaction made, and erase again"
    return ": remove that report, and erase again" if directory == ERASURES_DIR.partition("/")[0] else ""

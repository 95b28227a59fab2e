"""One version of a dataset, opened: its manifest, and the store and committer it came from.

A snapshot never changes; only `read_cache` grows. A pickle holds its URI, version and storage options, and opens the
version again. It also holds the version's moment, by which it refuses a dataset that was made again under the same URI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import lru_cache
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
from pyroaring import BitMap

from lance_ops import snapshot as snapshots
from lance_ops.committers import CommitLock, Committer, LockedCommitter, open_root
from lance_ops.core.addresses import row_addrs
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import CorruptFile, DatasetNotFound, LanceOpsError, VersionNotFound
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.threads import available_cores, map_ordered
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot.caches import ReadCache, Session
from lance_ops.snapshot.checksum_use import ChecksumUse
from lance_ops.snapshot.index_location import find_index_root
from lance_ops.snapshot.row_lineage import RowLineage
from lance_ops.snapshot.short_deletion_files import is_short, read_short_deletion_files
from lance_ops.store import Store
from lance_ops.table import (
    DataFile,
    Fragment,
    FragmentsById,
    IndexMetadata,
    Manifest,
    check_readable,
    decode_deletion_vector,
    decode_deletion_vectors,
)
from lance_ops.table.manifest import FileLocations
from lance_ops.table.rows import RowIdIndex, build_row_id_index, offsets_in
from lance_ops.transactions import read_manifest

if TYPE_CHECKING:
    from lance_ops.file import FileReader
    from lance_ops.snapshot import FragmentReader

__all__ = ["AUTO_CLEANUP_INTERVAL", "Snapshot"]

AUTO_CLEANUP_INTERVAL = "lance.auto_cleanup.interval"
"""The key of a table's configuration with which commits clean up every so many versions."""

_REMOTE_CALLS_AT_ONCE = 16
_SHORT_FILES_TOGETHER = 64  # at most 6 KiB each
_TASKS_BYTES = 64 << 20  # the fragments of tasks that run at once; a file of unknown size counts as all of it
_CACHED_LINEAGES = 32


@dataclass(frozen=True, eq=False, repr=False)
class Snapshot:
    """A dataset at one version."""

    store: Store
    committer: Committer
    manifest: Manifest
    storage_options: Mapping[str, str] = field(default_factory=dict)
    read_cache: ReadCache = field(default_factory=ReadCache)
    verify_checksums: ChecksumUse | None = None
    """Which reads verify pages; None leaves it to the table's configuration."""

    @classmethod
    def open(
        cls,
        uri: str,
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        verify_checksums: ChecksumUse | None = None,
        session: Session | None = None,
    ) -> Snapshot:
        """Open a version (the newest by default), with caches of its own or those of a session.

        Raises `DatasetNotFound`, `VersionNotFound`, and `UnsupportedFeature` for a table that needs a newer reader.
        """
        root = open_root(uri, storage_options)
        found = root.committer.latest() if version is None else version
        if found is None:
            raise DatasetNotFound(
                f"no Lance dataset at {root.store.uri}: check the URI, or create one with write_dataset"
            )
        cache = ReadCache() if session is None else ReadCache(session)
        return _load(root.store, root.committer, found, root.storage_options, verify_checksums, cache, as_listed=True)

    @classmethod
    def open_if_exists(cls, uri: str, storage_options: Mapping[str, str] | None = None) -> Snapshot | None:
        """Open the newest version; None if there is no dataset."""
        try:
            return cls.open(uri, storage_options=storage_options)
        except DatasetNotFound:
            return None

    @property
    def session(self) -> Session:
        """The caches that this version shares with others."""
        return self.read_cache.session

    def with_session(self, session: Session | None) -> Snapshot:
        """Return the same version with the caches of a session; with its own ones for None."""
        return self if session is None else replace(self, read_cache=ReadCache(session))

    def with_commit_lock(self, lock: CommitLock | None) -> Snapshot:
        """Return the same version, whose commits hold the lock if there is one. A pickle does not hold the lock."""
        return self if lock is None else replace(self, committer=LockedCommitter(self.committer, lock))

    @property
    def commit_lock(self) -> CommitLock | None:
        """The caller's lock that commits hold, or None."""
        return self.committer.lock if isinstance(self.committer, LockedCommitter) else None

    @property
    def verifies_reads(self) -> bool:
        """Whether every read of pages verifies them; raises `InvalidInput` for a wrong value in the configuration."""
        use = self.verify_checksums
        return (ChecksumUse.of_table(self.manifest.config, self.uri) if use is None else use) is ChecksumUse.ALWAYS

    def verifying(self) -> Snapshot:
        """Return the same version for reads that verify every page, because their rows decide what is written."""
        if self.verify_checksums is ChecksumUse.ALWAYS:
            return self
        _ = self.fragments_by_id  # computed once for both
        twin = replace(self, verify_checksums=ChecksumUse.ALWAYS)
        vars(twin).update({name: value for name, value in vars(self).items() if name not in vars(twin)})
        return twin

    @property
    def has_auto_cleanup(self) -> bool:
        """Whether commits to the table clean up."""
        return AUTO_CLEANUP_INTERVAL in self.manifest.config

    @property
    def uri(self) -> str:
        """The dataset's root."""
        return self.store.uri

    @property
    def version(self) -> int:
        """The number of this version."""
        return self.manifest.version

    @property
    def schema(self) -> Schema:
        """The table's schema at this version."""
        return self.manifest.schema

    @property
    def file_version(self) -> FileVersion:
        """The file version that new data files of this table get."""
        return FileVersion.from_manifest(self.manifest.data_format.version, self.manifest_uri)

    @property
    def calls_at_once(self) -> int:
        """How many store calls to make at once: one for each core on a local store, more on a remote one."""
        return available_cores() if self.store.reads_in_place else _REMOTE_CALLS_AT_ONCE

    @property
    def tasks_at_once(self) -> int:
        """How many tasks to run at once that each read and write one fragment: one for each core on a local store.

        On a remote store they wait for requests, so more of them run if the largest fragments take few bytes together.
        """
        cores = available_cores()
        if self.store.reads_in_place:
            return cores
        sizes = ([file.file_size_bytes or _TASKS_BYTES for file in fragment.files] for fragment in self.fragments)
        largest = max(map(sum, sizes), default=0)
        return max(cores, min(self.calls_at_once, _TASKS_BYTES // max(largest, 1)))

    @property
    def manifest_uri(self) -> str:
        """The URI of this version's manifest."""
        return self.store.uri_of(self.committer.location(self.version))

    @cached_property
    def file_locations(self) -> FileLocations:
        """The base paths of the manifest, which locate the files that it names."""
        return FileLocations(self.store, self.manifest.base_paths, self.storage_options)

    @cached_property
    def fragments(self) -> Sequence[Fragment]:
        """The fragments, in the order in which their rows are scanned.

        If the manifest has no row count for a fragment, it comes from the fragment's first file. So do all counts of a
        manifest that names no writer: some early writers counted only live rows.
        """
        if self.row_counts_are_known:
            return self.manifest.fragments
        trusted = self.manifest.writer_version is not None
        return tuple(
            fragment if (trusted and fragment.physical_rows) or not fragment.files else self._counted(fragment)
            for fragment in self.manifest.fragments
        )

    @cached_property
    def fragments_by_id(self) -> Mapping[int, Fragment]:
        """The fragments by id, in the order of `fragments`."""
        return FragmentsById(self.fragments)

    @cached_property
    def row_counts_are_known(self) -> bool:
        """Whether the manifest has a row count for each fragment, from a writer whose counts are right."""
        return self.manifest.writer_version is not None and self.manifest.fragments.state_their_rows

    @property
    def num_rows(self) -> int:
        """The number of rows that are not deleted; raises `CorruptFile` if the manifest states an impossible one."""
        if self.row_counts_are_known:
            self.manifest.fragments.check_row_counts()
            return self.manifest.num_rows
        return sum(self.num_live_rows(fragment) for fragment in self.fragments)

    @property
    def num_deleted_rows(self) -> int:
        """The number of rows that are deleted and still stored; raises what `num_rows` raises."""
        return sum(fragment.physical_rows for fragment in self.fragments) - self.num_rows

    @property
    def size_bytes(self) -> int:
        """The bytes of the data files, as far as the manifest states them; decodes no fragment."""
        return self.manifest.fragments.totals().data_file_bytes

    def num_live_rows(self, fragment: Fragment) -> int:
        """Return the number of a fragment's rows that are not deleted; raise `CorruptFile` for a negative one."""
        is_known = fragment.deletion_file is None or fragment.deletion_file.num_deleted_rows
        deleted = fragment.num_deletions if is_known else len(self.deletion_vector(fragment))
        if deleted > fragment.physical_rows:
            reason = f"{deleted} of {fragment.physical_rows} rows are deleted"
            raise CorruptFile(self.manifest_uri, f"fragment {fragment.id}", reason)
        return fragment.physical_rows - deleted

    def deletion_vector(self, fragment: Fragment) -> BitMap:
        """Return the physical offsets of a fragment's deleted rows. The bitmap is cached: do not change it."""
        if fragment.deletion_file is None:
            return BitMap()
        return self.read_cache.deletion_vector(fragment, lambda: self._read_deletion_vector(fragment))

    def read_deletion_vectors(self, fragments: Iterable[Fragment]) -> None:
        """Read the deletion files of these fragments into the cache: those in a remote store concurrently.

        To hand a file of a local store to another thread takes longer than to read it. Short ones are read together.
        """
        with_deletions = [fragment for fragment in fragments if fragment.deletion_file]
        for start in range(0, len(with_deletions), _SHORT_FILES_TOGETHER):
            self.read_short_deletion_vectors(with_deletions[start : start + _SHORT_FILES_TOGETHER])
        workers = 1 if self.store.reads_in_place else min(self.calls_at_once, len(with_deletions))
        for _ in map_ordered(self.deletion_vector, with_deletions, workers, _REMOTE_CALLS_AT_ONCE):
            pass

    def read_short_deletion_vectors(self, fragments: Iterable[Fragment]) -> None:
        """Read short deletion files of these fragments together into the cache, where the store reads in place.

        Files that cannot be read so, or fail a check, are left to `deletion_vector`, which raises the error.
        """
        short = [
            (fragment, file)
            for fragment in fragments
            if (file := fragment.deletion_file) is not None
            and file.base_id is None
            and is_short(file)
            and not self.read_cache.has_deletion_vector(fragment)
        ]
        if len(short) < 2 or not self.store.reads_in_place or self.manifest.writer_version is None:
            return
        with suppress(LanceOpsError, OSError):
            vectors = read_short_deletion_files(self.store, *zip(*short, strict=True))
            for (fragment, _), vector in zip(short, vectors or (), strict=False):
                self.read_cache.keep_deletion_vector(fragment, vector)

    def live_offsets(self, fragment: Fragment) -> Uint64Array:
        """Return the physical offsets of a fragment's live rows, ascending."""
        offsets = np.arange(fragment.physical_rows, dtype=np.uint64)
        deleted = self.deletion_vector(fragment)
        return np.delete(offsets, offsets_in(deleted)) if deleted else offsets

    def live_offsets_at(self, fragment: Fragment, positions: Int64Array) -> Int64Array:
        """Return the physical offsets of live rows, given their positions among the fragment's live rows.

        The work grows with the positions and the deleted rows, not with the fragment's rows. The caller has checked
        that the positions are those of live rows.
        """
        deleted = self.deletion_vector(fragment)
        if not deleted:
            return positions
        live_before = offsets_in(deleted) - np.arange(len(deleted))  # each deleted row
        return positions + live_before.searchsorted(positions, side="right")

    @cached_property
    def live_row_ends(self) -> Int64Array:
        """The number of live rows in the fragments up to and including each one, in the order of `fragments`."""
        if self.row_counts_are_known:
            return self.manifest.fragments.live_row_counts().cumsum()
        return np.cumsum([self.num_live_rows(fragment) for fragment in self.fragments], dtype=np.int64)

    @cached_property
    def first_positions(self) -> dict[int, int]:
        """The position of each fragment's first live row among all live rows, by the fragment's id."""
        return dict(zip(self.fragments_by_id, [0, *self.live_row_ends.tolist()], strict=False))

    def row_ids(self, fragment: Fragment, offsets: Uint64Array) -> Uint64Array:
        """Return the row ids at physical offsets: stable row ids if the table has them, else row addresses."""
        if not self.manifest.uses_stable_row_ids:
            return row_addrs(fragment.id, offsets)
        return self.lineage(fragment).row_ids.at(offsets)

    def lineage(self, fragment: Fragment) -> RowLineage:
        """Return the fragment's row ids and versions; those of the fragments used last are cached."""
        return self._lineage(fragment.id)

    @cached_property
    def row_id_index(self) -> RowIdIndex:
        """The addresses of all live rows by stable row id.

        Reads every deletion file on first use. Raises `CorruptFile` if two live rows have the same id.
        """
        self.read_deletion_vectors(self.fragments)
        rows = (
            (fragment.id, self._read_lineage(fragment.id).row_ids, self.deletion_vector(fragment))
            for fragment in self.fragments
        )
        return build_row_id_index(rows, self.manifest_uri)

    def find_index_root(self, index: IndexMetadata) -> Store | None:
        """Return the root of the dataset that holds a segment's files, None if no root does; see `index_location`."""
        if index.uuid not in self._index_roots:
            self._index_roots[index.uuid] = find_index_root(self.file_locations, index)
        return self._index_roots[index.uuid]

    def index_root(self, index: IndexMetadata) -> Store:
        """Return the root that holds a segment's files, or the stated one, where a read then fails."""
        return self.find_index_root(index) or self.file_locations.dataset_root(index.base_id, "an index")

    def reader(self, fragment: Fragment, threads: int = 1, scanned: frozenset[int] = frozenset()) -> FragmentReader:
        """Return a reader of the fragment's physical rows that decodes large reads in `threads` threads.

        `scanned` is as in `FragmentReader`.
        """
        files = self.session.open_files
        return snapshots.FragmentReader(
            self.file_locations, fragment, files, threads, verifies=self.verifies_reads, scanned=scanned
        )

    def open_data_file(self, file: DataFile) -> FileReader:
        """Return a reader of one data file; its reads verify pages if those of this snapshot do."""
        location = self.file_locations.data_file(file.base_id, file.path)
        reader = self.session.open_files.open(location, file.file_size_bytes)
        return reader.verifying() if self.verifies_reads else reader

    def at(self, version: int, *, as_listed: bool = False) -> Snapshot:
        """Open another version of the same dataset.

        With `as_listed` it may have been cleaned up since the versions were last listed; see `read_manifest`.
        """
        if version == self.version:
            return self
        cache = ReadCache(self.session)
        options, verify_checksums = self.storage_options, self.verify_checksums
        return _load(self.store, self.committer, version, options, verify_checksums, cache, as_listed=as_listed)

    def latest(self) -> Snapshot:
        """Open the newest version."""
        newest = self.committer.latest()
        if newest is None:
            raise DatasetNotFound(f"{self.uri}: the dataset does not exist any more")
        return self.at(newest, as_listed=True)

    def with_manifest(self, manifest: Manifest) -> Snapshot:
        """Return the snapshot of another version's manifest; cached reads of files that it still names stay cached."""
        cache = self.read_cache.for_version(manifest)
        return Snapshot(self.store, self.committer, manifest, self.storage_options, cache, self.verify_checksums)

    @cached_property
    def _index_roots(self) -> dict[UUID, Store | None]:
        return {}

    @cached_property
    def _lineage(self) -> Callable[[int], RowLineage]:
        return lru_cache(_CACHED_LINEAGES)(self._read_lineage)

    def _read_deletion_vector(self, fragment: Fragment) -> BitMap:
        assert fragment.deletion_file is not None
        file, location = fragment.deletion_file, self.file_locations.deletion_file(fragment)
        trusted = self.manifest.writer_version is not None
        physical_rows = (fragment if trusted else self.fragments_by_id[fragment.id]).physical_rows
        data = location.store.get(location.path)
        if not is_short(file):
            return decode_deletion_vector(file, data, physical_rows, location.uri)
        (vector,) = decode_deletion_vectors((file,), (data.to_pybytes(),), (physical_rows,), (location.uri,))
        return vector

    def _read_lineage(self, fragment_id: int) -> RowLineage:
        fragment = self.fragments_by_id[fragment_id]
        return RowLineage(self.store, fragment, self.manifest.next_row_id, self.manifest_uri)

    def _counted(self, fragment: Fragment) -> Fragment:
        return replace(fragment, physical_rows=self.reader(fragment).count_rows())

    def __repr__(self) -> str:
        return f"Snapshot({self.uri!r}, version={self.version})"

    def check_made_at(self, timestamp_ns: int | None) -> Snapshot:
        """Return this version; raise `VersionNotFound` unless it was committed at `timestamp_ns`. None allows any.

        Versions of one number and of two moments are of two datasets: the first one was removed, and the second one
        made under its URI.
        """
        if timestamp_ns not in (None, self.manifest.timestamp_ns):
            raise VersionNotFound(
                f"{self.uri}: version {self.version} is not the one that was opened before: the dataset was removed "
                "and made again under this URI; open it again"
            )
        return self

    def __reduce__(self) -> tuple[object, tuple[str, int, dict[str, str], ChecksumUse | None, int | None]]:
        options, made_at = dict(self.storage_options), self.manifest.timestamp_ns
        return _open_again, (self.uri, self.version, options, self.verify_checksums, made_at)


def _open_again(
    uri: str,
    version: int,
    storage_options: Mapping[str, str],
    verify_checksums: ChecksumUse | None,
    timestamp_ns: int | None,
) -> Snapshot:
    return Snapshot.open(uri, version, storage_options, verify_checksums).check_made_at(timestamp_ns)


def _load(
    store: Store,
    committer: Committer,
    version: int,
    storage_options: Mapping[str, str],
    verify_checksums: ChecksumUse | None,
    read_cache: ReadCache,
    *,
    as_listed: bool,
) -> Snapshot:
    try:
        manifest = read_manifest(store, committer, version, as_listed=as_listed)
    except VersionNotFound as error:
        retained = committer.versions()
        if not retained:
            raise DatasetNotFound(f"no Lance dataset at {store.uri}") from error
        numbers = f"{retained[0]} to {retained[-1]}"
        raise VersionNotFound(f"{store.uri} has no version {version}: it has {numbers}") from error
    check_readable(manifest, store.uri_of(committer.location(version)))
    return Snapshot(store, committer, manifest, storage_options, read_cache, verify_checksums)

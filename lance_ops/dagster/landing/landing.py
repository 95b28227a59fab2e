"""List a landing folder and group its raw files into batches.

Files and folders whose names start with `_` or `.` are ignored, as in Spark, and so is `lost+found` at the top. A batch
is ready when all its files are ready: old enough, or, if a marker is configured, in a folder that holds the marker.
What a file of 0 bytes is, the declaration says: still being written, refused by its run, or ignored. A batch waits,
too, while a file of it is set aside, or a folder that may hold one.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from lance_ops.core.cached_property import cached_property
from lance_ops.core.lazy_import import collector_paused
from lance_ops.core.records import dataclass
from lance_ops.core.schema import SchemaMode
from lance_ops.dagster.declaration import KeyPattern, PathGlob, RawFiles, StoreLocation, safe_key
from lance_ops.dagster.landing.incomplete_batches import batches_that_lack_files, without_repeated_links
from lance_ops.dagster.landing.landing_entries import LandedFile, SetAside
from lance_ops.dagster.landing.local_listing import list_local
from lance_ops.dagster.landing.outside_glob import OutsideGlob, outside_glob
from lance_ops.dagster.landing.remote_listing import list_remote
from lance_ops.maintenance.ingest import RAW_ENDINGS, IngestBatch, RawFile, batch_token, local_path

__all__ = [
    "Changed",
    "LandedBatch",
    "LandedFile",
    "Landing",
    "SetAside",
    "group_files",
    "is_in_future",
    "list_files",
    "list_landing",
    "original_key",
    "shortened",
]

Changed: TypeAlias = Literal["refuse", "append", "replace"]
"""What becomes of a batch that changed after it was ingested."""

_LOST = "lost+found/"
"""The folder at the root of a file system in which a repair of the file system puts files."""
_CHANGED = "="
_TOKEN_LENGTH = 12
_SHOWN = 20
_PATH = attrgetter("path")
_CODECS = (".snappy", ".lz4", ".xz", ".br", ".zip")
"""What engines write into a name besides, such as a.snappy.parquet."""
_ENDINGS = re.compile(rf"(?<=[^/])(?:{'|'.join(map(re.escape, (*RAW_ENDINGS, *_CODECS)))})+$", re.IGNORECASE)
_MOST_SKEW_SECONDS = 60.0
"""How far the clocks of a store and of this machine may differ before a time counts as one in the future."""
_NO_KEY = "raw.key is not found in its path; rename it, widen raw.key, or leave it out by raw.glob or raw.unmatched"


@dataclass(frozen=True)
class LandedBatch:
    """Files that are ingested together under one key."""

    key: str
    files: tuple[LandedFile, ...]

    @property
    def modified(self) -> datetime:
        """The modification time of the batch's newest file."""
        first, *others = self.files
        return max(first.modified, *(file.modified for file in others)) if others else first.modified

    @property
    def arrived(self) -> datetime:
        """When the last of the batch's files came into the folder, or changed there."""
        return max(file.arrived for file in self.files)

    def was_there(self, moment: datetime) -> bool:
        """Return whether all files were there at a moment, to the second: Dagster may store times of runs so."""
        return self.arrived.replace(microsecond=0) <= moment

    @property
    def order(self) -> tuple[datetime, str]:
        """The batch's position in the order of arrival: by modification time, then by key."""
        return self.modified, self.key

    @cached_property
    def token(self) -> str:
        """An identity of the content of all files, as the batch of `to_ingest` has it."""
        return batch_token([(file.uri, file.token) for file in self.files])

    def as_changed(self) -> LandedBatch:
        """Return this content as a batch with its own key, beside the earlier content of the same files."""
        return LandedBatch(f"{self.key}{_CHANGED}{self.token[:_TOKEN_LENGTH]}", self.files)

    def batch_to_request(self, held: Mapping[str, str], changed: Changed) -> LandedBatch | None:
        """Return the batch that a run must ingest; None if the table has it, or if it changed and is left alone.

        `held` maps the keys of the table's batches to their tokens.
        """
        token = held.get(self.key)
        if token is None or (token != self.token and changed == "replace"):
            return self
        if token == self.token or changed == "refuse":
            return None
        other = self.as_changed()
        return None if held.get(other.key) == other.token else other

    def to_ingest(self) -> IngestBatch:
        """Return the batch as `maintenance.ingest` takes it."""
        return IngestBatch(
            self.key, tuple(RawFile(file.uri, file.size_bytes, file.token, file.listed) for file in self.files)
        )


@dataclass(frozen=True)
class Landing:
    """The batches of a landing folder at one moment; `ready` and `waiting` are in the order of arrival."""

    ready: tuple[LandedBatch, ...]
    waiting: tuple[LandedBatch, ...]
    set_aside: tuple[SetAside, ...] = ()
    """What is not read, with the reason: paths without a key, links, names that cannot be taken literally."""
    empty: tuple[str, ...] = ()
    """Paths of files of 0 bytes that are left out."""
    outside: OutsideGlob = OutsideGlob()
    """The files that `raw.glob` leaves out, but for empty and young ones."""
    lacking: Mapping[str, str] = field(default_factory=dict)
    """Why batches wait that lack a file because something is set aside, by key."""
    seconds: float = 0.0
    """How long the listing took, with the grouping."""

    def newest(self, known: Iterable[str], held: Iterable[str]) -> LandedBatch | None:
        """Return the newest batch that is ready, or that waits after it was asked for or ingested.

        `known` are Dagster's keys of batches that were asked for, and `held` the keys of those in the table.
        """
        newest = self.ready[-1] if self.ready else None
        newer = {batch.key: batch for batch in self.waiting if newest is None or batch.order > newest.order}
        begun = (newer.get(key) or newer.get(original_key(key)) for key in (*known, *held)) if newer else ()
        return max(filter(None, begun), key=attrgetter("order"), default=newest)

    def wanted(self, raw: RawFiles, known: Iterable[str], held: Iterable[str]) -> tuple[LandedBatch, ...]:
        """Return the ready batches whose rows belong into the table: all, or the `newest` if that is the whole table.

        If the newest batch waits, as for a file that is set aside, no older one must become the whole table instead.
        """
        if raw.schema_mode is not SchemaMode.OVERWRITE:
            return self.ready
        newest = self.newest(known, held)
        return tuple(batch for batch in self.ready[-1:] if batch is newest)

    def why_lacking(self, key: str) -> str | None:
        """Return why a batch lacks a file, also for the key of its changed content; None if it lacks none."""
        return self.lacking.get(key) or self.lacking.get(original_key(key))

    def find(self, keys: Iterable[str]) -> tuple[dict[str, LandedBatch], tuple[str, ...]]:
        """Return the batches of these keys, ready or waiting, and the keys that have no batch."""
        landed = {batch.key: batch for batch in (*self.ready, *self.waiting)}
        found = {}
        missing = []
        for key in keys:
            batch = landed.get(key)
            if batch is None:
                batch = landed.get(original_key(key))
                batch = batch.as_changed() if batch else None
            if batch is not None and batch.key == key:
                found[key] = batch
            else:
                missing.append(key)
        return found, tuple(missing)


def original_key(key: str) -> str:
    """Return the key without the suffix of changed content. For a key that lacks the suffix, the result is any text."""
    return key.rpartition(_CHANGED)[0]


def list_landing(raw: RawFiles, now: datetime, environment: Mapping[str, str] | None = None) -> Landing:
    """List the folder and group its files into batches. A folder that does not exist counts as empty.

    The garbage collector pauses while the batches of many files are made: a collection would look at every new object,
    and none of them is garbage. It runs during the requests to a store, which may take any time.
    """
    begun = time.monotonic()
    files = list_files(raw.location(environment), follow_links=raw.links == "follow")
    with collector_paused():
        landing = group_files(raw, files, now)
    return replace(landing, seconds=time.monotonic() - begun)


def is_in_future(file: LandedFile, raw: RawFiles, now: datetime) -> bool:
    """Return whether a file's time of modification is so far ahead of `now` that the file would not settle."""
    return (file.modified - now).total_seconds() > max(raw.settle_seconds, _MOST_SKEW_SECONDS)


def shortened(sentences: Sequence[str]) -> list[str]:
    """Return the first of these sentences on files that are set aside, and one with the number of the others."""
    more = len(sentences) - _SHOWN
    return [*sentences[:_SHOWN], f"{more} more files are set aside"] if more > 0 else [*sentences]


def list_files(location: StoreLocation, *, follow_links: bool = False) -> Iterator[LandedFile | SetAside]:
    """Yield every file beneath a location, in no order, and what is set aside among them.

    A store has been listed when this returns; a local folder is listed while the caller iterates.
    """
    folder = local_path(location.uri)
    if folder is not None:
        return list_local(os.path.expanduser(folder), follow_links=follow_links)
    return list_remote(location, follow_links=follow_links)


def group_files(raw: RawFiles, files: Iterable[LandedFile | SetAside], now: datetime) -> Landing:
    """Group listed files into batches by the configured key."""
    wanted = PathGlob(raw.glob)
    listed, set_aside = _told_apart(files, raw.marker, wanted)
    completeness = _Completeness(raw, listed, now)
    counting: list[LandedFile] = []
    others: list[LandedFile] = []
    for file in listed:
        if _counts(file.path):
            (counting if wanted.matches(file.path) else others).append(file)
    counting.sort(key=_PATH)
    left_out = tuple(file.path for file in counting if completeness.leaves_out(file))
    counting = [file for file in counting if not completeness.leaves_out(file)]
    grouped: defaultdict[str, list[LandedFile]] = defaultdict(list)
    without_key: list[SetAside] = []
    for file, key in zip(counting, _keys(raw, [file.path for file in counting]), strict=True):
        if key is not None:
            grouped[key].append(file)
        elif raw.unmatched == "set_aside" and completeness.is_ready(file) and _name(file.path) != raw.marker:
            without_key.append(SetAside(file.path, _NO_KEY))
    lacking = batches_that_lack_files(
        _unread(raw, set_aside, listed, grouped, left_out),
        grouped,
        lambda paths: _keys(raw, paths),
        wanted.matches,
        have_own_folders=raw.key is None,
    )
    batches = sorted((LandedBatch(key, tuple(group)) for key, group in grouped.items()), key=lambda batch: batch.order)
    ready: list[LandedBatch] = []
    waiting: list[LandedBatch] = []
    for batch in batches:
        is_ready = batch.key not in lacking and all(map(completeness.is_ready, batch.files))
        (ready if is_ready else waiting).append(batch)
    set_aside = sorted((*set_aside, *without_key), key=_PATH)
    outside = [file.path for file in others if completeness.has_landed(file) and _name(file.path) != raw.marker]
    told = outside_glob(raw.glob, outside)
    return Landing(tuple(ready), tuple(waiting), tuple(set_aside), left_out, told, lacking)


def _told_apart(
    files: Iterable[LandedFile | SetAside], marker: str | None, wanted: PathGlob
) -> tuple[list[LandedFile], list[SetAside]]:
    """Return the listed files, and what is set aside where files of batches, or markers, may stand."""
    listed: list[LandedFile] = []
    set_aside: list[SetAside] = []
    for file in files:
        if isinstance(file, LandedFile):
            listed.append(file)
        elif PurePosixPath(file.path).name == marker or (
            _counts(file.path) and (file.is_folder or wanted.matches(file.path))
        ):
            set_aside.append(file)
    return listed, set_aside


def _unread(
    raw: RawFiles,
    set_aside: Iterable[SetAside],
    listed: Iterable[LandedFile],
    batches: Mapping[str, Sequence[LandedFile]],
    left_out: Iterable[str],
) -> list[SetAside]:
    """Return what is set aside and may hold files of batches that these do not read under another path."""
    counting = [entry for entry in set_aside if _counts(entry.path)]
    paths, wanted = (file.path for file in listed), PathGlob(raw.glob)

    def matches(path: str) -> bool:
        return _counts(path) and wanted.matches(path)

    return without_repeated_links(counting, paths, batches, {*left_out}, lambda found: _keys(raw, found), matches)


class _Completeness:
    """Says which listed files are complete: old enough, or in a folder that has the marker."""

    def __init__(self, raw: RawFiles, listed: Iterable[LandedFile], now: datetime) -> None:
        self._raw, self._now = raw, now
        self._marked = {_folder(file.path) for file in listed if _name(file.path) == raw.marker} if raw.marker else ()

    def leaves_out(self, file: LandedFile) -> bool:
        """Return whether the file is in no batch, because it is complete and empty."""
        return file.size_bytes == 0 and self._raw.empty == "ignore" and self._is_complete(file)

    def is_ready(self, file: LandedFile) -> bool:
        """Return whether the file is complete, and no empty one that may still be written."""
        may_grow = file.size_bytes == 0 and self._raw.empty == "wait" and self._raw.marker is None
        return not may_grow and self._is_complete(file)

    def has_landed(self, file: LandedFile) -> bool:
        """Return whether a file has bytes and is old enough. It needs no marker, because no batch waits for it."""
        return file.size_bytes > 0 and self._is_old(file)

    def _is_complete(self, file: LandedFile) -> bool:
        if self._raw.marker is not None:
            return _folder(file.path) in self._marked
        return self._is_old(file)

    def _is_old(self, file: LandedFile) -> bool:
        """Return whether the file was not changed lately.

        If its modification time is in the future, the time of its arrival counts.
        """
        since = file.modified
        if file.moved is not None and is_in_future(file, self._raw, self._now):
            since = file.moved
        return (self._now - since).total_seconds() >= self._raw.settle_seconds


def _counts(path: str) -> bool:
    return not (path.startswith(("_", ".", _LOST)) or "/_" in path or "/." in path or path == _LOST[:-1])


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _keys(raw: RawFiles, paths: Sequence[str]) -> Sequence[str | None]:
    """Return the keys of the batches to which files belong; None for a path in which `raw.key` is not found."""
    if raw.key is not None:
        return [key if key is None else safe_key(key) for key in KeyPattern(raw.key).search(paths)]
    if raw.batch == "folder":
        return [safe_key(_folder(path) or "all") for path in paths]
    return [safe_key(_without_endings(path)) for path in paths]


def _without_endings(path: str) -> str:
    return _ENDINGS.sub("", path)

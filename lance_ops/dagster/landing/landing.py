"""List a landing folder and group its raw files into batches.

Files and folders whose names start with `_` or `.` are ignored, as in Spark, and so are `lost+found` at the top and the
files of Lance tables: a table beneath its own landing folder would otherwise be ingested into itself. A batch is ready
when all its files are ready: old enough, or, if a marker is configured, in a folder that holds the marker. The
declaration says whether a file of 0 bytes is still being written, is refused by its run, or is ignored. A batch also
waits while one of its files is set aside, or a folder that may hold one.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from pathlib import PurePosixPath

from lance_ops.core.errors import ConfigError
from lance_ops.core.lazy_import import collector_paused
from lance_ops.dagster.declaration import KeyPattern, PathGlob, RawFiles, StoreLocation, safe_key
from lance_ops.dagster.landing.incomplete_batches import batches_that_lack_files, without_repeated_links
from lance_ops.dagster.landing.landing_entries import LandedBatch, LandedFile, Landing, SetAside
from lance_ops.dagster.landing.local_listing import list_local
from lance_ops.dagster.landing.outside_glob import outside_glob
from lance_ops.dagster.landing.remote_listing import list_remote
from lance_ops.maintenance.ingest import RAW_ENDINGS, local_path

__all__ = [
    "group_files",
    "is_in_future",
    "list_files",
    "list_landing",
    "shortened",
]

_LOST = "lost+found/"
"""The folder at the root of a file system in which a repair of the file system puts files."""
_OF_A_TABLE = re.compile(r"((?:.*/)?)(?:_versions/[^/]+\.manifest|data/[^/]+\.lance)", re.DOTALL)
"""A manifest or a data file of a Lance table; a writer creates data files first. The group is the table's folder."""
_SHOWN = 20
_PATH = attrgetter("path")
_CODECS = (".snappy", ".lz4", ".xz", ".br", ".zip")
"""What engines write into a name besides, such as a.snappy.parquet."""
_ENDINGS = re.compile(rf"(?<=[^/])(?:{'|'.join(map(re.escape, (*RAW_ENDINGS, *_CODECS)))})+$", re.IGNORECASE)
_MOST_SKEW_SECONDS = 60.0
"""How far a store's clock may be ahead of this machine's. Stores keep their clocks better than writers do."""
_NO_KEY = "raw.key is not found in its path; rename it, widen raw.key, or leave it out by raw.glob or raw.unmatched"


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


def shortened(sentences: Sequence[str], others: str = "{} more files are set aside") -> list[str]:
    """Return the first 20 sentences. If there are more, add `others` with the number of the others in its braces."""
    more = len(sentences) - _SHOWN
    return [*sentences[:_SHOWN], others.format(more)] if more > 0 else [*sentences]


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


def _without_tables(files: Iterable[LandedFile | SetAside]) -> list[LandedFile | SetAside]:
    """Return the entries that are in no Lance table; raise `ConfigError` if the landing folder itself is one."""
    entries = list(files)
    landed = (entry.path for entry in entries if isinstance(entry, LandedFile))
    matches = (_OF_A_TABLE.fullmatch(path) for path in landed if path.endswith((".manifest", ".lance")))
    tables = tuple({match[1] for match in matches if match is not None})
    if "" in tables:
        raise ConfigError(
            "raw.uri: this folder is a Lance table, whose files are no raw files: name the folder in which files land"
        )
    return [entry for entry in entries if not entry.path.startswith(tables)] if tables else entries


def _told_apart(
    files: Iterable[LandedFile | SetAside], marker: str | None, wanted: PathGlob
) -> tuple[list[LandedFile], list[SetAside]]:
    """Return the listed files, and what is set aside where files of batches, or markers, may stand."""
    listed: list[LandedFile] = []
    set_aside: list[SetAside] = []
    for file in _without_tables(files):
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

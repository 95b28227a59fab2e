"""List a landing folder and group its raw files into batches.

Files and folders whose names start with `_` or `.` are ignored, as in Spark. An empty file counts as still being
written. A batch is ready when all its files are ready: old enough, or, if a marker is configured, in a folder that
holds the marker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from fsspec.core import url_to_fs

from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import KeyPattern, PathGlob, RawFiles, StoreLocation, safe_key
from lance_ops.maintenance.ingest import IngestBatch, RawFile

__all__ = ["LandedBatch", "LandedFile", "Landing", "group_files", "list_files", "list_landing"]

_CHANGED = "="
_TOKEN_LENGTH = 12


@dataclass(frozen=True)
class LandedFile:
    """A listed file: its path beneath the landing folder, and what identifies its content."""

    path: str
    uri: str
    size_bytes: int
    modified: datetime
    etag: str | None = None

    @property
    def token(self) -> str:
        """An identity of the content: the store's ETag, or else size and modification time."""
        return self.etag or f"{self.size_bytes}-{self.modified.timestamp():.6f}"


@dataclass(frozen=True)
class LandedBatch:
    """Files that are ingested together under one key."""

    key: str
    files: tuple[LandedFile, ...]

    @property
    def modified(self) -> datetime:
        """The modification time of the batch's newest file."""
        return max(file.modified for file in self.files)

    @property
    def order(self) -> tuple[datetime, str]:
        """The batch's position in the order of arrival: by modification time, then by key."""
        return self.modified, self.key

    @property
    def token(self) -> str:
        """An identity of the content of all files."""
        return self.to_ingest().token

    def as_changed(self) -> LandedBatch:
        """Return this content as a batch with its own key, beside the earlier content of the same files."""
        return LandedBatch(f"{self.key}{_CHANGED}{self.token[:_TOKEN_LENGTH]}", self.files)

    def to_ingest(self) -> IngestBatch:
        """Return the batch as `maintenance.ingest` takes it."""
        return IngestBatch(self.key, tuple(RawFile(file.uri, file.size_bytes, file.token) for file in self.files))


@dataclass(frozen=True)
class Landing:
    """The batches of a landing folder at one moment; `ready` and `waiting` are in the order of arrival."""

    ready: tuple[LandedBatch, ...]
    waiting: tuple[LandedBatch, ...]
    unmatched: tuple[str, ...] = ()
    """Paths that do not match the configured `key` pattern."""

    def find(self, keys: Iterable[str]) -> tuple[dict[str, LandedBatch], tuple[str, ...]]:
        """Return the batches of these keys, ready or waiting, and the keys that have no batch."""
        landed = {batch.key: batch for batch in (*self.ready, *self.waiting)}
        found = {}
        missing = []
        for key in keys:
            batch = landed.get(key)
            if batch is None and _CHANGED in key:
                batch = landed.get(key.rpartition(_CHANGED)[0])
                batch = batch.as_changed() if batch else None
            if batch is not None and batch.key == key:
                found[key] = batch
            else:
                missing.append(key)
        return found, tuple(missing)


def list_landing(raw: RawFiles, now: datetime, environment: Mapping[str, str] | None = None) -> Landing:
    """List the folder and group its files into batches. A folder that does not exist counts as empty."""
    return group_files(raw, list_files(raw.location(environment)), now)


def list_files(location: StoreLocation) -> Iterator[LandedFile]:
    """Yield every file beneath a location, in no order."""
    filesystem, root = url_to_fs(location.uri, **location.storage_options)
    filesystem.invalidate_cache()
    prefix = root.rstrip("/") + "/"
    try:
        found = filesystem.find(root, detail=True)
    except FileNotFoundError:
        return
    for path, info in found.items():
        if path.startswith(prefix):
            yield LandedFile(
                path=path.removeprefix(prefix),
                uri=filesystem.unstrip_protocol(path) if "://" in location.uri else path,
                size_bytes=int(info["size"]),
                modified=_modified(info, path),
                etag=_etag(info),
            )


def group_files(raw: RawFiles, files: Iterable[LandedFile], now: datetime) -> Landing:
    """Group listed files into batches by the configured key."""
    wanted = PathGlob(raw.glob)
    listed = list(files)
    marked = {_folder(file.path) for file in listed if PurePosixPath(file.path).name == raw.marker}
    grouped: defaultdict[str, list[LandedFile]] = defaultdict(list)
    unmatched = []
    counting = [file for file in listed if _counts(file.path) and wanted.matches(file.path)]
    counting.sort(key=lambda file: file.path)
    for file, key in zip(counting, _keys(raw, [file.path for file in counting]), strict=True):
        if key is None:
            unmatched.append(file.path)
        else:
            grouped[safe_key(key)].append(file)

    def is_settled(file: LandedFile) -> bool:
        if raw.marker is not None:
            return _folder(file.path) in marked
        return file.size_bytes > 0 and (now - file.modified).total_seconds() >= raw.settle_seconds

    batches = sorted((LandedBatch(key, tuple(group)) for key, group in grouped.items()), key=lambda batch: batch.order)
    ready = tuple(batch for batch in batches if all(map(is_settled, batch.files)))
    waiting = tuple(batch for batch in batches if not all(map(is_settled, batch.files)))
    return Landing(ready, waiting, tuple(unmatched))


def _counts(path: str) -> bool:
    return not any(part.startswith(("_", ".")) for part in path.split("/"))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _keys(raw: RawFiles, paths: Sequence[str]) -> Sequence[str | None]:
    if raw.key is not None:
        return KeyPattern(raw.key).search(paths)
    if raw.batch == "folder":
        return [_folder(path) or "all" for path in paths]
    return [_without_endings(path) for path in paths]


def _without_endings(path: str) -> str:
    name = PurePosixPath(path).name
    return path.removesuffix(name) + name.partition(".")[0]


def _modified(info: Mapping[str, Any], path: str) -> datetime:
    """Return the modification time; fsspec's file systems state it under different names."""
    for name in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        match info.get(name):
            case datetime() as moment:
                return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            case float() | int() as seconds:
                return datetime.fromtimestamp(seconds, UTC)
            case str() as text:
                return datetime.fromisoformat(text).astimezone(UTC)
    raise InvalidInput(f"raw file {path}: its file system does not say when it was modified, so it cannot be watched")


def _etag(info: Mapping[str, Any]) -> str | None:
    for name in ("ETag", "etag"):
        if value := info.get(name):
            return str(value).strip('"')
    return None

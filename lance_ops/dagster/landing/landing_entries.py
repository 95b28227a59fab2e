"""What a landing folder holds at one moment: files, what is set aside, and the batches that the files form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import field
from datetime import datetime
from operator import attrgetter
from typing import Literal, TypeAlias

from lance_ops.core.cached_property import cached_property
from lance_ops.core.records import dataclass
from lance_ops.core.schema import SchemaMode
from lance_ops.dagster.declaration import RawFiles
from lance_ops.dagster.landing.outside_glob import OutsideGlob
from lance_ops.maintenance import IngestedBatch
from lance_ops.maintenance.ingest import (
    IngestBatch,
    ListedFile,
    RawFile,
    StatedFile,
    batch_token,
    content_token,
    printable,
)

__all__ = ["Changed", "LandedBatch", "LandedFile", "Landing", "SetAside", "original_key"]

Changed: TypeAlias = Literal["refuse", "append", "replace"]
"""What becomes of a batch that changed after it was ingested."""

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
    listed: ListedFile | None = field(default=None, compare=False, repr=False)
    """The identity of a local file, with which its reader compares the file that it opens."""
    moved: datetime | None = field(default=None, compare=False, repr=False)
    """When a local file came to its path, at the latest: copies and moves keep the time of modification."""

    @property
    def token(self) -> str:
        """An identity of the content: the store's ETag, or else size and modification time."""
        return content_token(self.size_bytes, self.modified, self.etag)

    @property
    def arrived(self) -> datetime:
        """When the file came into the folder, or changed there."""
        return self.modified if self.moved is None else max(self.modified, self.moved)

    def to_ingest(self) -> RawFile:
        """Return the file as `maintenance.ingest` takes it."""
        stated = StatedFile(self.size_bytes, self.modified, self.etag)
        return RawFile(self.uri, self.size_bytes, self.token, self.listed, stated)


@dataclass(frozen=True)
class SetAside:
    """A file or folder that is not read. `path` is as listed, and may not be UTF-8; `name` can be shown anywhere."""

    path: str
    reason: str
    is_folder: bool = False
    is_repeated: bool = False
    """Whether the landing folder lists the files of this folder under another path."""
    target: str | None = None
    """The path beneath the landing folder to which a link leads; None for what is no such link."""

    @property
    def name(self) -> str:
        """The path on one line, with escapes for what is not printable or not UTF-8."""
        return printable(self.path)

    @property
    def sentence(self) -> str:
        """The name and the reason, with the remedy."""
        return f"{self.name}: set aside: {self.reason}"


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

    def batch_to_request(self, tokens: Mapping[str, str], changed: Changed) -> LandedBatch | None:
        """Return the batch that a run must ingest; None if the table has it, or if it changed and is left alone.

        `tokens` are those of the table's batches, by key.
        """
        token = tokens.get(self.key)
        if token is None or (token != self.token and changed == "replace"):
            return self
        if token == self.token or changed == "refuse":
            return None
        other = self.as_changed()
        return None if tokens.get(other.key) == other.token else other

    def was_taken_out(self, taken_out: Mapping[str, str], recorded: Container[str]) -> bool:
        """Return whether the table lacks this content because a restore or an overwrite took it out.

        `taken_out` are the tokens of such batches by key. A batch of which they do not tell counts as taken out if a
        run `recorded` it as ingested.
        """
        return taken_out[self.key] == self.token if self.key in taken_out else self.key in recorded

    def to_ingest(self) -> IngestBatch:
        """Return the batch as `maintenance.ingest` takes it."""
        return IngestBatch(self.key, tuple(file.to_ingest() for file in self.files))


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
        """Return the newest batch of those that are ready, and of those that were asked for or ingested and now wait.

        `known` are Dagster's keys of batches that were asked for, and `held` the keys of those in the table.
        """
        newest = self.ready[-1] if self.ready else None
        newer = {batch.key: batch for batch in self.waiting if newest is None or batch.order > newest.order}
        begun = (newer.get(key) or newer.get(original_key(key)) for key in (*known, *held)) if newer else ()
        return max(filter(None, begun), key=attrgetter("order"), default=newest)

    def wanted(
        self,
        raw: RawFiles,
        known: Collection[str],
        read_held: Callable[[], Mapping[str, IngestedBatch]],
        last_seen_place: tuple[datetime, str] | None = None,
    ) -> tuple[LandedBatch, ...]:
        """Return the ready batches whose rows belong into the table: all, or the `newest` if that is the whole table.

        `read_held` returns the batches in the table. It is called only if the table must tell. `last_seen_place` is
        the highest place in the order of arrival that the sensor has passed. No older batch must become the whole table
        because the newest one waits, as for a file that is set aside, or because its files were moved away after it was
        ingested.
        """
        if raw.schema_mode is not SchemaMode.OVERWRITE:
            return self.ready
        if not self.ready:
            return ()
        newest = self.ready[-1]
        # The sensor never asked for a batch above its place. A batch at this place may be older than the table's: after
        # its run failed, another program may have ingested a batch that was never in the folder.
        is_newest_ever = last_seen_place is not None and newest.order > last_seen_place
        waits = bool(self.waiting) and self.waiting[-1].order > newest.order
        if is_newest_ever and not waits:
            return (newest,)
        held = read_held()
        if self.newest(known, held) is not newest:
            return ()
        return () if not is_newest_ever and self._is_older_than_table(newest, known, held) else (newest,)

    def _is_older_than_table(
        self, newest: LandedBatch, known: Collection[str], held: Mapping[str, IngestedBatch]
    ) -> bool:
        """Return whether the table has a newer batch than the newest one that is in the folder.

        A batch that arrived after the table's batch was committed is newer, whatever else is known. Of the others, the
        batch that was asked for later is newer. If only one of the two was ever asked for, the table's batch is newer.
        A key that is delivered again keeps its place among Dagster's partitions, so their order alone tells nothing.
        """
        in_table = max(held, key=lambda key: held[key].version, default=None)
        if in_table is None or newest.key in held:
            return False
        if any(batch.key in (in_table, original_key(in_table)) for batch in (*self.ready, *self.waiting)):
            return False
        committed_at = held[in_table].committed_at
        if committed_at is not None and newest.arrived > committed_at:
            return False
        if newest.key in known and in_table in known:
            places = list(known)
            return places.index(newest.key) < places.index(in_table)
        return committed_at is not None

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

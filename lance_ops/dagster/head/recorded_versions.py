"""Read back the versions that Dagster's events tell of.

Events outlive clean-up, and reading them back costs one query. So charts and timelines reach further than the retained
versions, and no manifest is read for them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self, TypeAlias

import dagster as dg

from lance_ops.core.errors import CorruptFile, UnsupportedFeature, VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.event_log import records_of_pages
from lance_ops.maintenance.health import LastChange, VersionSummary, last_change
from lance_ops.snapshot import Snapshot
from lance_ops.table import Manifest
from lance_ops.transactions import COMMIT_MESSAGE, MOST_CLOCK_SKEW_SECONDS

__all__ = [
    "DATA_VERSION_TAG",
    "RecordedHistory",
    "RecordedVersion",
    "VersionIdentity",
    "change_metadata",
    "change_up_to",
    "identity_of",
    "is_dated_ahead",
    "may_hold",
    "newest_recorded_version",
    "recorded_versions",
]

DATA_VERSION_TAG = "dagster/data_version"

VersionIdentity: TypeAlias = tuple[int, float]
"""What tells a version from every other one: its number, and when it was committed; see `RecordedVersion`."""

_COMMITTED_AT = "lance/committed_at"
_CHANGED_IN = "lance/rows_changed_in"
_CHANGED_AT = "lance/rows_changed_at"
_INDEXED = "lance/indexed_ratio"
_AMPLIFICATION = "lance/read_amplification"
_MESSAGE = "lance/commit_message"
_TAGS = "lance/tags"
_NEWEST = 200
"""How many of the newest events a history begins with: a chart and a timeline show fewer versions."""
_PAGE = 1000
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_COUNTS = {
    "num_rows": "dagster/row_count",
    "num_fragments": "lance/num_fragments",
    "num_deleted_rows": "lance/num_deleted_rows",
    "size_bytes": "lance/size_bytes",
}
"""The counts that every event has, by the name of the field."""


@dataclass(frozen=True)
class RecordedVersion:
    """What a materialization of the head tells of its version. Its number and its time identify it.

    A dataset that was removed and created again counts from 1 again. `committed_at` is in seconds of the Unix epoch, to
    the millisecond, 0 if the version's writer did not state it.
    """

    version: int
    committed_at: float
    operation: str
    num_rows: int
    num_fragments: int
    num_deleted_rows: int
    size_bytes: int
    indexed_ratio: float | None
    read_amplification: float | None
    tags: tuple[str, ...]
    message: str
    last_change: LastChange | None = None
    """The newest version up to this one that changed rows, as far as the event tells."""

    @classmethod
    def of(cls, summary: VersionSummary, read_amplification: float, *, changed_rows: bool) -> Self:
        """Return what an event of this version will tell."""
        return cls(
            version=summary.version,
            committed_at=_seconds(summary.timestamp),
            operation=summary.operation,
            num_rows=summary.num_rows,
            num_fragments=summary.num_fragments,
            num_deleted_rows=summary.num_deleted_rows,
            size_bytes=summary.size_bytes,
            indexed_ratio=summary.indexed_ratio,
            read_amplification=read_amplification,
            tags=summary.tags,
            message=summary.transaction_properties.get(COMMIT_MESSAGE, ""),
            last_change=LastChange(summary.version, summary.timestamp) if changed_rows else None,
        )

    @classmethod
    def told_by(cls, event: dg.AssetMaterialization) -> Self | None:
        """Return the version that an event records, None if its metadata is not that of the head."""
        found: dict[str, Any] = {name: value.value for name, value in event.metadata.items()}
        version = (event.tags or {}).get(DATA_VERSION_TAG, "")
        if not version.isdigit() or not all(isinstance(found.get(key), int) for key in _COUNTS.values()):
            return None
        indexed, amplification = found.get(_INDEXED), found.get(_AMPLIFICATION)
        return cls(
            version=int(version),
            committed_at=round(float(found.get(_COMMITTED_AT) or 0.0), 3),
            operation=str(found.get("lance/operation", "?")),
            **{name: found[key] for name, key in _COUNTS.items()},
            indexed_ratio=float(indexed) if isinstance(indexed, (int, float)) else None,
            read_amplification=float(amplification) if isinstance(amplification, (int, float)) else None,
            tags=tuple(str(found[_TAGS]).split(", ")) if found.get(_TAGS) else (),
            message=str(found.get(_MESSAGE, "")),
            last_change=_last_change_told(found),
        )

    @property
    def identity(self) -> VersionIdentity:
        """What tells this version from every other one."""
        return self.version, self.committed_at

    @property
    def moment(self) -> str:
        """When the version was committed, in UTC, for people."""
        return f"{datetime.fromtimestamp(self.committed_at, UTC):%Y-%m-%d %H:%M:%S}" if self.committed_at else ""

    def metadata(self) -> dict[str, Any]:
        """Return the metadata that `told_by` reads back."""
        metadata: dict[str, Any] = {
            "lance/version": self.version,
            "lance/operation": self.operation,
            **{key: getattr(self, name) for name, key in _COUNTS.items()},
        }
        if self.committed_at:
            metadata[_COMMITTED_AT] = dg.MetadataValue.timestamp(datetime.fromtimestamp(self.committed_at, UTC))
        optional = {
            _INDEXED: self.indexed_ratio,
            _AMPLIFICATION: self.read_amplification,
            _TAGS: ", ".join(self.tags) or None,
            _MESSAGE: self.message or None,
        }
        known = {key: value for key, value in optional.items() if value is not None}
        return metadata | known | (change_metadata(self.last_change) if self.last_change else {})


class RecordedHistory:
    """The versions that the head's events tell of. Events are read as far back as the caller asks for versions."""

    def __init__(self, instance: dg.DagsterInstance, config: DatasetConfig) -> None:
        """Read the newest events."""
        self._instance, self._head = instance, DatasetNames(config.name).head
        page = instance.fetch_materializations(dg.AssetRecordsFilter(self._head), limit=_NEWEST)
        self._newest = list(_told_by(page.records))
        self._known = {each.identity for each in self._newest}
        self._complete_since = page.records[-1].timestamp if page.has_more else 0.0
        self._others: list[RecordedVersion] = []
        self._unread: Iterator[RecordedVersion] | None = None

    @property
    def versions(self) -> list[RecordedVersion]:
        """The versions that were read. The newest ones come first, the newest event first."""
        return [*self._newest, *reversed(self._others)]

    def holds(self, identity: VersionIdentity) -> bool:
        """Return whether an event records this version. Ask for versions in the order of their commits.

        An event is logged after its version was committed, so the events since the commit are read, the oldest first:
        a run logs it soon. They are read from `MOST_CLOCK_SKEW_SECONDS` before the commit on, because the clock of the
        process that logs them may be behind the writer's. A time far in the future is that of a wrong clock, and tells
        nothing.
        """
        if identity in self._known:
            return True
        since = 0.0 if is_dated_ahead(identity[1], time.time()) else identity[1] - MOST_CLOCK_SKEW_SECONDS
        if since > self._complete_since:
            return False
        if self._unread is None:
            self._unread = self._events_since(since)
        for told in self._unread:
            if told.identity not in self._known:
                self._known.add(told.identity)
                self._others.append(told)
            if told.identity == identity:
                return True
        return False

    def _events_since(self, moment: float) -> Iterator[RecordedVersion]:
        wanted = dg.AssetRecordsFilter(self._head, after_timestamp=max(moment, 0.0))
        read = partial(self._instance.fetch_materializations, wanted, limit=_PAGE, ascending=True)
        return _told_by(records_of_pages(read))


def is_dated_ahead(committed_at: float, now: float) -> bool:
    """Return whether a version bears a time that is further ahead than clocks may differ; in seconds of the Unix epoch.

    Its writer's clock was wrong, so the time tells nothing of the version's age.
    """
    return committed_at - now > MOST_CLOCK_SKEW_SECONDS


def identity_of(manifest: Manifest) -> VersionIdentity:
    """Return the identity of a version that is opened."""
    return manifest.version, _seconds(manifest.timestamp)


def may_hold(newest: Snapshot, identity: VersionIdentity) -> bool:
    """Return whether the opened dataset has, or had before a clean-up, a version up to this one of that identity.

    False for a version of a dataset that was removed and created again, as far as its number's version can be read.
    """
    version = identity[0]
    if version > newest.version:
        return False
    try:
        manifest = newest.manifest if version == newest.version else newest.at(version).manifest
    except (VersionNotFound, CorruptFile, UnsupportedFeature):
        return True
    return identity_of(manifest) == identity


def change_metadata(change: LastChange) -> dict[str, Any]:
    """Return the metadata that tells which version changed rows last; `RecordedVersion.told_by` reads it back."""
    metadata: dict[str, Any] = {_CHANGED_IN: change.version}
    if change.committed_at is not None:
        metadata[_CHANGED_AT] = dg.MetadataValue.timestamp(change.committed_at)
    return metadata


def change_up_to(newest: Snapshot, told: Sequence[RecordedVersion]) -> LastChange | None:
    """Return the newest change of rows up to an opened version, as events tell it.

    An event that tells a change knows all versions up to its own. If a later version has no event, the later versions
    are read. A dataset that was removed and created again counts from 1 again. So if the telling event is not of the
    retained version of its number, all retained versions are read.
    """
    teller = max(
        (each for each in told if each.last_change is not None and each.version <= newest.version),
        key=lambda each: (_changed_at(each), each.committed_at, each.version),
        default=None,
    )
    if teller is None or not may_hold(newest, teller.identity):
        return last_change(newest)
    since = {each.version for each in told if each.committed_at >= teller.committed_at}
    if since.issuperset(range(teller.version + 1, newest.version + 1)):
        return teller.last_change
    return last_change(newest, teller.version) or teller.last_change


def _seconds(moment: datetime | None) -> float:
    return round(moment.timestamp(), 3) if moment else 0.0


def _changed_at(told: RecordedVersion) -> datetime:
    return (told.last_change.committed_at if told.last_change else None) or _LONG_AGO


def _last_change_told(found: Mapping[str, Any]) -> LastChange | None:
    version, seconds = found.get(_CHANGED_IN), found.get(_CHANGED_AT)
    if not isinstance(version, int):
        return None
    return LastChange(version, datetime.fromtimestamp(float(seconds), UTC) if seconds else None)


def recorded_versions(instance: dg.DagsterInstance, config: DatasetConfig, limit: int) -> Iterator[RecordedVersion]:
    """Yield the versions of the newest `limit` materializations of the head, the newest event first."""
    head = DatasetNames(config.name).head
    yield from _told_by(instance.fetch_materializations(dg.AssetRecordsFilter(head), limit=limit).records)


def newest_recorded_version(instance: dg.DagsterInstance, config: DatasetConfig) -> int | None:
    """Return the version of the head's newest materialization; None without one. The table is not looked at."""
    event = instance.get_latest_materialization_event(DatasetNames(config.name).head)
    recorded = event.asset_materialization if event else None
    version = (recorded.tags or {}).get(DATA_VERSION_TAG, "") if recorded else ""
    return int(version) if version.isdigit() else None


def _told_by(records: Iterable[dg.EventLogRecord]) -> Iterator[RecordedVersion]:
    for record in records:
        event = record.asset_materialization
        told = RecordedVersion.told_by(event) if event is not None else None
        if told is not None:
            yield told

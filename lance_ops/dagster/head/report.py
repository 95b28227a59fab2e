"""Record each committed version once as a materialization of the head."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head.index_events import index_events
from lance_ops.dagster.head.overview import CHARTED, overview
from lance_ops.dagster.head.owed import debt_policy
from lance_ops.dagster.head.recorded_versions import (
    DATA_VERSION_TAG,
    RecordedHistory,
    RecordedVersion,
    VersionIdentity,
    change_metadata,
    change_up_to,
    is_dated_ahead,
)
from lance_ops.dagster.head.version_metadata import NewVersion, version_metadata
from lance_ops.maintenance.debt import DebtPolicy, read_cost
from lance_ops.maintenance.health import changed_rows, summarised_versions
from lance_ops.snapshot import Snapshot

__all__ = ["Unrecorded", "head_event", "report_versions", "unrecorded"]

_Event = dg.AssetMaterialization | dg.AssetObservation


@dataclass(frozen=True)
class Unrecorded:
    """Events of versions that the head lacks and of their indices, the oldest first.

    `versions` are these versions. `reached` identifies the last of the asked versions that was looked at: with these
    events, each one up to it is recorded. It is None if there was none to look at.
    """

    events: tuple[_Event, ...] = ()
    versions: tuple[int, ...] = ()
    reached: VersionIdentity | None = None


def report_versions(
    context: dg.OpExecutionContext | dg.AssetExecutionContext,
    config: DatasetConfig,
    newest: Snapshot,
    since: int,
    started: datetime,
) -> tuple[int, ...]:
    """Log a materialization of the head for each version after `since`, up to `newest`; return the versions.

    They include versions that other writers committed meanwhile, unless an event records them already. After a crash,
    the version sensor records the remaining ones.
    """
    versions = [version for version in newest.committer.versions() if since < version <= newest.version]
    found = unrecorded(context.instance, config, newest, versions, started=started)
    for event in found.events:
        context.log_event(event)
    return found.versions


def unrecorded(
    instance: dg.DagsterInstance,
    config: DatasetConfig,
    newest: Snapshot,
    versions: Sequence[int],
    *,
    started: datetime | None = None,
    grace: timedelta = timedelta(0),
    max_seconds: float | None = None,
) -> Unrecorded:
    """Return the events of those of the ascending `versions` that the head has no materialization of.

    A version committed within `grace` is left out, with all that follow. So are those that follow when `max_seconds`
    are over; the first one is looked at all the same. Each version costs the read of one manifest. Only the last one
    gets an overview, for which older versions without an event may be read.
    """
    if not versions:
        return Unrecorded()
    begun = time.monotonic()
    history = RecordedHistory(instance, config)
    last: NewVersion | None = None
    reached: VersionIdentity | None = None
    older: list[tuple[RecordedVersion, Sequence[_Event]]] = []
    for new in _oldest_first(newest, versions, debt_policy(config)):
        if not history.holds(new.recorded.identity):
            if _is_young(new.summary.timestamp, grace):
                break
            if last is not None:
                older.append((last.recorded, [head_event(config, last, started), *index_events(config, last)]))
            last = new
        reached = new.recorded.identity
        if max_seconds is not None and time.monotonic() - begun >= max_seconds:
            break
    if last is None:
        return Unrecorded(reached=reached)
    told = [last.recorded, *(each for each, _ in reversed(older))]
    known = [*told, *history.versions]
    head = head_event(config, last, started)
    shown = overview(instance, config, last.snapshot, _charted(known))
    change = change_up_to(last.snapshot, known)
    shown |= change_metadata(change) if change else {}
    of_last = [head.with_metadata({**head.metadata, **shown}), *index_events(config, last, is_newest=True)]
    events = [event for _, of_version in older for event in of_version]
    return Unrecorded((*events, *of_last), tuple(each.version for each in reversed(told)), reached)


def head_event(config: DatasetConfig, new: NewVersion, started: datetime | None = None) -> dg.AssetMaterialization:
    """Return the materialization of the head for a version."""
    metadata = version_metadata(config, new, started)
    metadata["dagster/uri"] = config.table().public_uri
    metadata["dagster/table_name"] = config.name
    return dg.AssetMaterialization(
        DatasetNames(config.name).head,
        description=f"version {new.recorded.version}: {new.recorded.operation}",
        metadata=metadata,
        tags={DATA_VERSION_TAG: str(new.recorded.version)},
    )


def _is_young(committed_at: datetime | None, grace: timedelta) -> bool:
    """Return whether a version was committed within the grace period, or by a clock that is somewhat ahead.

    A time far ahead is that of a wrong clock. If it counted as young, this version and all that follow would stay
    unrecorded until then.
    """
    if committed_at is None or not grace:
        return False
    now = datetime.now(UTC)
    return now - committed_at < grace and not is_dated_ahead(committed_at.timestamp(), now.timestamp())


def _oldest_first(newest: Snapshot, versions: Sequence[int], policy: DebtPolicy) -> Iterator[NewVersion]:
    """Yield the retained ones of the ascending `versions`, each with the retained version before it."""
    first = versions[0]
    before: Snapshot | None = None
    earlier = [version for version in newest.committer.versions() if version < first][-1:]
    for snapshot, summary in summarised_versions(newest, [*earlier, *versions]):
        if summary.version >= first:
            changed = changed_rows(before, snapshot, summary.operation)
            told = RecordedVersion.of(summary, read_cost(snapshot, policy).amplification, changed_rows=changed)
            yield NewVersion(snapshot, before, summary, told)
        before = snapshot


def _charted(told: Sequence[RecordedVersion]) -> list[RecordedVersion]:
    """Return the newest versions up to the first of `told`, oldest first; `told` begins with what is newest.

    Of several versions with one number, of a dataset that was removed and created again, the first one counts.
    """
    by_number: dict[int, RecordedVersion] = {}
    for each in told:
        if each.version <= told[0].version:
            by_number.setdefault(each.version, each)
    return [by_number[version] for version in sorted(by_number)][-CHARTED:]

"""Record each committed version once as a materialization of the head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head.head import COMMITTED_AT, DATA_VERSION_TAG, head_event
from lance_ops.maintenance.health import VersionSummary, timeline
from lance_ops.snapshot import Snapshot

__all__ = ["report_versions", "unrecorded"]

_TIMELINE_LENGTH = 20
"""How many versions the timeline in an event shows."""

_MARGIN = 200
"""How many more events than versions are read: concurrent runs record their own versions in any order."""

_Identity = tuple[str, float]
"""A version's number and its time. A dataset that was removed and created again counts from 1 again."""


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
    reported = []
    for past in unrecorded(context.instance, config, newest, versions):
        version = past[-1].version
        context.log_event(head_event(config, newest.at(version).schema, past, started))
        reported.append(version)
    return tuple(reported)


def unrecorded(
    instance: dg.DagsterInstance,
    config: DatasetConfig,
    newest: Snapshot,
    versions: Sequence[int],
    num_events: int | None = None,
) -> Iterator[Sequence[VersionSummary]]:
    """Yield a timeline for each of the ascending `versions` that the head has no materialization of.

    A timeline ends with its version. `num_events` is how many of the newest events may be about these versions or newer
    ones; the default is the number of versions. Raises `VersionNotFound` if clean-up
    removes the last version meanwhile.
    """
    if not versions:
        return
    recorded = _recorded(instance, DatasetNames(config.name).head, num_events or len(versions))
    past = timeline(newest.at(versions[-1]), limit=len(versions) + _TIMELINE_LENGTH)
    for end, summary in enumerate(past, start=1):
        if summary.version >= versions[0] and (str(summary.version), _seconds(summary.timestamp)) not in recorded:
            yield past[max(end - _TIMELINE_LENGTH, 0) : end]


def _recorded(instance: dg.DagsterInstance, head: dg.AssetKey, num_expected: int) -> set[_Identity]:
    found = instance.fetch_materializations(dg.AssetRecordsFilter(asset_key=head), limit=num_expected + _MARGIN)
    recorded = set()
    for record in found.records:
        event = record.asset_materialization
        if event is not None:
            committed_at = event.metadata.get(COMMITTED_AT)
            seconds = committed_at.value if isinstance(committed_at, dg.TimestampMetadataValue) else 0.0
            recorded.add(((event.tags or {}).get(DATA_VERSION_TAG, ""), round(seconds, 3)))
    return recorded


def _seconds(timestamp: datetime | None) -> float:
    return round(timestamp.timestamp(), 3) if timestamp else 0.0

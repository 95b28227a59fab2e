"""Record committed versions as materializations of the head, each once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import dagster as dg

from lance_ops.core.errors import VersionNotFound
from lance_ops.dagster.config import DatasetConfig
from lance_ops.dagster.head import COMMITTED_AT, DATA_VERSION_TAG, head_event
from lance_ops.dagster.names import DatasetNames
from lance_ops.snapshot.snapshot import Snapshot

__all__ = ["report_versions", "unrecorded"]

_MARGIN = 200
"""Events to look at beyond the versions asked for: other runs record their own, in whatever order they end."""

_Identity = tuple[str, float]
"""A version's number and its time, since a dataset that was made anew counts from 1 again."""


def report_versions(
    context: dg.OpExecutionContext | dg.AssetExecutionContext,
    config: DatasetConfig,
    newest: Snapshot,
    since: int,
    started: datetime,
) -> tuple[int, ...]:
    """Log a materialization of the head for each version after `since`, up to `newest`; return the versions.

    That includes versions that others committed meanwhile, unless they are recorded already. A crash before this leaves
    the rest to the version watcher.
    """
    versions = [version for version in newest.committer.versions() if since < version <= newest.version]
    reported = []
    for snapshot in unrecorded(context.instance, config, newest, versions):
        context.log_event(head_event(config, snapshot, started))
        reported.append(snapshot.version)
    return tuple(reported)


def unrecorded(
    instance: dg.DagsterInstance, config: DatasetConfig, newest: Snapshot, versions: Sequence[int]
) -> Iterator[Snapshot]:
    """Yield those of the versions that the head has no materialization of; one that clean-up removes is left out."""
    recorded = _recorded(instance, DatasetNames(config.name).head, len(versions)) if versions else set()
    for version in versions:
        try:
            snapshot = newest.at(version)
        except VersionNotFound:
            continue
        if (str(version), _seconds(snapshot.manifest.timestamp)) not in recorded:
            yield snapshot


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

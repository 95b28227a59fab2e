"""Record the declared indices: each change of an index's files, and how much of the newest version it covers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head.recorded_versions import DATA_VERSION_TAG
from lance_ops.dagster.head.version_metadata import NewVersion
from lance_ops.maintenance.health import IndexCoverage, index_coverage
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata

__all__ = ["index_events"]


def index_events(
    config: DatasetConfig, new: NewVersion, *, is_newest: bool = False
) -> Iterator[dg.AssetMaterialization | dg.AssetObservation]:
    """Yield what a version tells of the declared indices.

    An index whose segments changed is materialized. For the newest version, the others are observed, also missing ones,
    because versions that leave an index alone make it stale.
    """
    names, version = DatasetNames(config.name), new.recorded.version
    coverage = {index.name: index for index in index_coverage(new.snapshot)} if config.indices else {}
    for wanted in config.indices:
        name = wanted.index_name
        found, segments = coverage.get(name), _segments(new.snapshot, name)
        changed = new.before is None or _ids(segments) != _ids(_segments(new.before, name))
        if found is not None and changed:
            yield dg.AssetMaterialization(
                names.index(name),
                description=f"version {version}: the index has new segments",
                metadata=_metadata(new, found, segments),
                tags={DATA_VERSION_TAG: str(version)},
            )
        elif found is not None and is_newest:
            sentence = f"version {version}: {found.indexed_ratio:.1%} of the rows are covered"
            yield dg.AssetObservation(names.index(name), description=sentence, metadata=_metadata(new, found, segments))
        elif found is None and is_newest:
            yield dg.AssetObservation(
                names.index(name),
                description=f"version {version}: the index is missing; reindex builds it",
                metadata={"lance/version": version, "lance/indexed_ratio": 0.0},
            )


def _metadata(new: NewVersion, found: IndexCoverage, segments: list[IndexMetadata]) -> dict[str, Any]:
    """Return an index's coverage, and how old its newest segment is."""
    metadata: dict[str, Any] = {
        "lance/version": new.recorded.version,
        "lance/indexed_ratio": found.indexed_ratio,
        "lance/unindexed_rows": found.num_unindexed_rows,
        "lance/unindexed_fragments": found.num_unindexed_fragments,
        "lance/size_bytes": found.size_bytes,
        "lance/num_segments": found.num_segments,
        "lance/index_type": found.type_name,
        "lance/columns": ", ".join(found.fields),
        "lance/versions_behind": new.recorded.version - max(each.dataset_version for each in segments),
    }
    created = [each.created_at_ms for each in segments if each.created_at_ms is not None]
    if created:
        metadata["lance/built_at"] = dg.MetadataValue.timestamp(datetime.fromtimestamp(max(created) / 1000, UTC))
    return metadata


def _segments(snapshot: Snapshot, name: str) -> list[IndexMetadata]:
    return [each for each in snapshot.manifest.indices if each.name == name]


def _ids(segments: list[IndexMetadata]) -> set[UUID]:
    return {each.uuid for each in segments}

"""Describe one committed version as metadata: what it did, and what it left, from its manifest and the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.dagster.declaration import ColumnNotes, DatasetConfig
from lance_ops.dagster.head.recorded_versions import RecordedVersion
from lance_ops.dagster.markdown import size_text, table
from lance_ops.maintenance import batch_properties
from lance_ops.maintenance.health import (
    IndexCoverage,
    VersionDifference,
    VersionSummary,
    compare_versions,
    index_coverage,
    row_changes,
)
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import COMMIT_MESSAGE

__all__ = ["NewVersion", "column_schema", "indices_markdown", "version_metadata"]


_DESCRIPTIONS = (b"lance:description", b"description")
"""The keys of a field's metadata that hold its description."""


@dataclass(frozen=True)
class NewVersion:
    """A version to record. `before` is the retained version before it, None if there is none."""

    snapshot: Snapshot
    before: Snapshot | None
    summary: VersionSummary
    recorded: RecordedVersion


def version_metadata(config: DatasetConfig, new: NewVersion, started: datetime | None = None) -> dict[str, Any]:
    """Return a version's metadata, under Dagster's own keys where they exist and under `lance/` elsewhere.

    `started` is when the work on the version began; if it is given, the metadata states how long the version took.
    """
    snapshot, summary = new.snapshot, new.summary
    metadata: dict[str, Any] = {
        "dagster/column_schema": column_schema(snapshot.schema, config.columns),
        "dagster/row_count": summary.num_rows,
        "dagster/storage_kind": "lance",
        **new.recorded.metadata(),
        "lance/num_batches": len(summary.batches),
        **_transaction(summary),
        **_changes(new),
    }
    writer = snapshot.manifest.writer_version
    if writer is not None:
        metadata["lance/writer"] = f"{writer.library} {writer.version}"
    indices = index_coverage(snapshot)
    if indices:
        metadata["lance/indices"] = dg.MetadataValue.md(indices_markdown(indices))
    seconds = _seconds(new, started)
    if seconds is not None:
        metadata["lance/seconds"] = seconds
    return metadata


def column_schema(schema: Schema, notes: Mapping[str, ColumnNotes] | None = None) -> dg.TableSchema:
    """Return the top-level columns as a Dagster table schema.

    A column's description is the declared one, else that in the field's metadata.
    """
    declared = {name: each.description for name, each in (notes or {}).items()}
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                field.name,
                str(field.type),
                declared.get(field.name) or _description(field.metadata or {}),
                dg.TableColumnConstraints(nullable=field.nullable),
            )
            for field in schema.to_arrow()
        ]
    )


def indices_markdown(indices: Sequence[IndexCoverage]) -> str:
    """Return the coverage of indices as a table."""
    lines = [
        (
            index.name,
            index.type_name,
            ", ".join(index.fields),
            f"{index.indexed_ratio:.1%}",
            f"{index.num_unindexed_rows:,}",
            size_text(index.size_bytes),
        )
        for index in indices
    ]
    return table(["index", "type", "columns", "rows covered", "rows not covered", "size"], lines)


def _description(metadata: Mapping[bytes, bytes]) -> str | None:
    found = next((metadata[key] for key in _DESCRIPTIONS if key in metadata), None)
    return None if found is None else found.decode(errors="replace")


def _transaction(summary: VersionSummary) -> dict[str, Any]:
    """Return the properties of the transaction, but for those of its batches, which are too many."""
    metadata: dict[str, Any] = {}
    shown = batch_properties(dict.fromkeys(summary.batches, "")) | {COMMIT_MESSAGE: ""}
    properties = {key: value for key, value in summary.transaction_properties.items() if key not in shown}
    if properties:
        metadata["lance/transaction"] = dg.MetadataValue.json(properties)
    return metadata


def _changes(new: NewVersion) -> dict[str, Any]:
    """Return what the version changed, as far as manifests tell."""
    metadata: dict[str, Any] = {}
    rows = row_changes(new.before, new.snapshot, new.summary.operation)
    if rows is not None:
        metadata |= {"lance/rows_inserted": rows.inserted, "lance/rows_deleted": rows.deleted}
        if rows.updated is not None:
            metadata["lance/rows_updated"] = rows.updated
    if new.before is None:
        return metadata
    difference = compare_versions(new.before, new.snapshot, versions=[new.summary])
    metadata["lance/size_change_bytes"] = difference.size_after - difference.size_before
    metadata["lance/fragment_changes"] = (
        f"{len(difference.fragments_added):,} added, {len(difference.fragments_removed):,} removed, "
        f"{len(difference.fragments_changed):,} changed"
    )
    if difference.columns:
        metadata["lance/schema_changes"] = dg.MetadataValue.md(_columns_markdown(difference))
    since = _since(new.before.manifest.timestamp, new.summary.timestamp)
    if since is not None:
        metadata["lance/seconds_since_last_version"] = since
    return metadata


def _columns_markdown(difference: VersionDifference) -> str:
    lines = [(each.path, each.change.value, each.before or "", each.after or "") for each in difference.columns]
    return table(["column", "", "before", "after"], lines)


def _seconds(new: NewVersion, started: datetime | None) -> float | None:
    """Return the seconds to this commit from the start of the work, or from the previous commit if that is later."""
    committed = new.summary.timestamp
    if started is None or committed is None or committed < started:
        return None
    previous = new.before.manifest.timestamp if new.before is not None else None
    return _since(max(started, previous or started), committed)


def _since(earlier: datetime | None, later: datetime | None) -> float | None:
    """Return the seconds between two commits, 0 if the writers' clocks disagree about their order."""
    return None if earlier is None or later is None else max((later - earlier).total_seconds(), 0.0)

"""Build the event that records one committed version on the dataset's head asset."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from textwrap import shorten
from typing import Any

import dagster as dg

from lance_ops.core.schema import Schema
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.markdown import size_text, table
from lance_ops.maintenance import batch_properties
from lance_ops.maintenance.health import VersionSummary
from lance_ops.transactions import COMMIT_MESSAGE

__all__ = ["COMMITTED_AT", "DATA_VERSION_TAG", "column_schema", "head_event", "timeline_markdown", "version_metadata"]

DATA_VERSION_TAG = "dagster/data_version"
COMMITTED_AT = "lance/committed_at"

_MESSAGE_LENGTH = 100
"""How much of a commit message the timeline shows; the version's own metadata has all of it."""


def head_event(
    config: DatasetConfig, schema: Schema, past: Sequence[VersionSummary], started: datetime | None = None
) -> dg.AssetMaterialization:
    """Return the materialization of the head for the last version of `past`, whose schema is given.

    `started` is when the work on the version began; if it is given, the event states how long the version took.
    """
    version = past[-1]
    metadata = version_metadata(version, schema, _seconds(past, started))
    metadata["lance/timeline"] = dg.MetadataValue.md(timeline_markdown(past))
    metadata["dagster/uri"] = config.table().public_uri
    metadata["dagster/table_name"] = config.name
    return dg.AssetMaterialization(
        DatasetNames(config.name).head,
        description=f"version {version.version}: {version.operation}",
        metadata=metadata,
        tags={DATA_VERSION_TAG: str(version.version)},
    )


def version_metadata(summary: VersionSummary, schema: Schema, seconds: float | None) -> dict[str, Any]:
    """Return a version's metadata, under Dagster's own keys where they exist and under `lance/` elsewhere."""
    reserved = batch_properties(dict.fromkeys(summary.batches, ""))
    shown = reserved | {COMMIT_MESSAGE: ""}
    properties = {key: value for key, value in summary.transaction_properties.items() if key not in shown}
    metadata: dict[str, Any] = {
        "dagster/column_schema": column_schema(schema),
        "dagster/row_count": summary.num_rows,
        "dagster/storage_kind": "lance",
        "lance/version": summary.version,
        "lance/operation": summary.operation,
        "lance/num_fragments": summary.num_fragments,
        "lance/num_deleted_rows": summary.num_deleted_rows,
        "lance/size_bytes": summary.size_bytes,
        "lance/num_batches": len(summary.batches),
    }
    if summary.timestamp is not None:
        metadata[COMMITTED_AT] = dg.MetadataValue.timestamp(summary.timestamp)
    if summary.indexed_ratio is not None:
        metadata["lance/indexed_ratio"] = summary.indexed_ratio
    if summary.tags:
        metadata["lance/tags"] = ", ".join(summary.tags)
    if COMMIT_MESSAGE in summary.transaction_properties:
        metadata["lance/commit_message"] = summary.transaction_properties[COMMIT_MESSAGE]
    if properties:
        metadata["lance/transaction"] = dg.MetadataValue.json(properties)
    if seconds is not None:
        metadata["lance/seconds"] = seconds
    return metadata


def column_schema(schema: Schema) -> dg.TableSchema:
    """Return the top-level columns as a Dagster table schema."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(field.name, str(field.type), constraints=dg.TableColumnConstraints(nullable=field.nullable))
            for field in schema.to_arrow()
        ]
    )


def timeline_markdown(summaries: Sequence[VersionSummary]) -> str:
    """Return the versions as a table, the newest first."""
    header = [
        "version",
        "committed (UTC)",
        "operation",
        "rows",
        "fragments",
        "deleted",
        "size",
        "indexed",
        "tags",
        "message",
    ]
    return table(header, [_line(summary) for summary in reversed(summaries)])


def _line(summary: VersionSummary) -> Sequence[object]:
    return (
        summary.version,
        f"{summary.timestamp:%Y-%m-%d %H:%M:%S}" if summary.timestamp else "",
        summary.operation,
        f"{summary.num_rows:,}",
        f"{summary.num_fragments:,}",
        f"{summary.num_deleted_rows:,}",
        size_text(summary.size_bytes),
        "" if summary.indexed_ratio is None else f"{summary.indexed_ratio:.1%}",
        ", ".join(summary.tags),
        shorten(summary.transaction_properties.get(COMMIT_MESSAGE, ""), _MESSAGE_LENGTH, placeholder=" …"),
    )


def _seconds(past: Sequence[VersionSummary], started: datetime | None) -> float | None:
    """Return the seconds to this commit from the start of the work, or from the previous commit if that is later."""
    committed = [summary.timestamp for summary in past if summary.timestamp is not None]
    if started is None or not committed or committed[-1] < started:
        return None
    since = max([started, *committed[-2:-1]])
    return max((committed[-1] - since).total_seconds(), 0.0)

"""Describe the newest version for people: a timeline, trends, its debt, and when its files were verified last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import dagster as dg

from lance_ops.api import LanceDataset
from lance_ops.charts import Mark, Panel, image_address, trend_chart, version_chart
from lance_ops.core.errors import LanceOpsError
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head.integrity import verified_at
from lance_ops.dagster.head.owed import debt_markdown, debt_policy
from lance_ops.dagster.head.recorded_versions import RecordedVersion
from lance_ops.dagster.markdown import size_text, table
from lance_ops.maintenance.debt import measure_debt
from lance_ops.refs import branch_of, list_branches, reference_store
from lance_ops.snapshot import Snapshot
from lance_ops.verbs import sample_of

__all__ = ["CHARTED", "overview", "timeline_markdown", "trend_svg", "version_svg"]

CHARTED = 60
"""How many versions a chart shows."""

_LISTED = 20
"""How many versions the table of the timeline shows."""

_MESSAGE_LENGTH = 100
"""How much of a commit message the timeline shows; the version's own metadata has all of it."""

_KINDS = {
    "rows added": ("Append", "Overwrite"),
    "rows changed": ("Update", "Restore"),
    "rows deleted": ("Delete",),
    "columns": ("Merge", "Project", "DataReplacement"),
    "upkeep": ("Rewrite", "CreateIndex", "ReserveFragments"),
    "other": (),
}
"""The operations of each colour; `other` has those that no colour names."""


def overview(
    instance: dg.DagsterInstance, config: DatasetConfig, newest: Snapshot, past: Sequence[RecordedVersion]
) -> dict[str, Any]:
    """Return the metadata that only the newest of the recorded versions gets; `past` ends with this version.

    If the debt cannot be measured, for example because a tag's file is damaged, its place tells the reason.
    """
    charted = past[-CHARTED:]
    chart = image_address(version_svg(config.name, charted, _branches(newest)))
    trend = image_address(trend_svg(config.name, charted))
    metadata: dict[str, Any] = {
        "lance/timeline": dg.MetadataValue.md(f"![versions]({chart})\n\n{timeline_markdown(past[-_LISTED:])}"),
        "lance/trend": dg.MetadataValue.md(f"![trends]({trend})"),
    }
    if config.head.sample_rows:
        metadata["lance/sample"] = _sample(newest, config.head.sample_rows)
    verified = verified_at(instance, config)
    if verified is not None:
        metadata["lance/unverified_since"] = dg.MetadataValue.timestamp(verified)
    try:
        debt = measure_debt(newest, debt_policy(config), verified_at=verified)
    except LanceOpsError as error:
        return metadata | {"lance/debt": str(error)}
    return metadata | {
        "lance/owed": ", ".join(due.key for due in debt.owed) or "nothing",
        "lance/owed_bytes": debt.rewrite_bytes,
        "lance/debt": dg.MetadataValue.md(debt_markdown(debt.dues)),
    }


def timeline_markdown(past: Sequence[RecordedVersion]) -> str:
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
    return table(header, [_line(each) for each in reversed(past)])


def trend_svg(name: str, past: Sequence[RecordedVersion]) -> str:
    """Return how rows, bytes, fragments and the cost of a read grew from version to version."""
    newest = past[-1]
    amplification = newest.read_amplification
    panels = [
        Panel("rows", [each.num_rows for each in past], f"{newest.num_rows:,}"),
        Panel("bytes", [each.size_bytes for each in past], size_text(newest.size_bytes)),
        Panel("fragments", [each.num_fragments for each in past], f"{newest.num_fragments:,}"),
        Panel(
            "a read costs, against one without debt",
            [each.read_amplification for each in past],
            "" if amplification is None else f"{amplification:.2f} times",
            floor=1.0,
        ),
    ]
    return trend_chart(f"{name} over its versions", f"version {past[0].version}", f"{newest.version}", panels)


def version_svg(name: str, past: Sequence[RecordedVersion], branches: Mapping[int, Sequence[str]]) -> str:
    """Return the versions with their operations, tags, and the branches that began at them."""
    kind_of = {operation: kind for kind, operations in _KINDS.items() for operation in operations}
    marks = [
        Mark(
            each.version,
            kind_of.get(each.operation, "other"),
            shorten(f"version {each.version}: {each.operation} {each.moment} {each.message}", _MESSAGE_LENGTH),
            each.tags,
            tuple(branches.get(each.version, ())),
        )
        for each in past
    ]
    return version_chart(f"versions of {name}", marks, tuple(_KINDS))


def _sample(newest: Snapshot, num_rows: int) -> dg.MetadataValue[Any]:
    """Return the last rows as a table, or why they cannot be read."""
    try:
        rows = sample_of(
            LanceDataset.of(newest), None, "", offset=max(newest.num_rows - num_rows, 0), num_rows=num_rows
        )
    except LanceOpsError as error:
        return dg.MetadataValue.text(str(error))
    return dg.MetadataValue.md(table(rows.header, rows.lines))


def _line(each: RecordedVersion) -> Sequence[object]:
    return (
        each.version,
        each.moment,
        each.operation,
        f"{each.num_rows:,}",
        f"{each.num_fragments:,}",
        f"{each.num_deleted_rows:,}",
        size_text(each.size_bytes),
        "" if each.indexed_ratio is None else f"{each.indexed_ratio:.1%}",
        ", ".join(each.tags),
        shorten(each.message, _MESSAGE_LENGTH, placeholder=" …"),
    )


def _branches(snapshot: Snapshot) -> dict[int, list[str]]:
    """Return the branches that began at each version of the snapshot's own branch."""
    found: dict[int, list[str]] = {}
    for name, branch in sorted(list_branches(reference_store(snapshot)).items()):
        if branch.parent_branch == branch_of(snapshot):
            found.setdefault(branch.parent_version, []).append(name)
    return found

"""Describe the newest version for people: a timeline, trends, its debt, orphans, and when it was verified last."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import Any

import dagster as dg

from lance_ops.api import LanceDataset
from lance_ops.charts import image_address
from lance_ops.core.errors import LanceOpsError
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head.integrity import last_intact_pass_at
from lance_ops.dagster.head.orphans import counted_orphans
from lance_ops.dagster.head.owed import VERIFY, debt_markdown, debt_policy, past_costs, verification_due
from lance_ops.dagster.head.recorded_versions import RecordedVersion
from lance_ops.dagster.markdown import size_text, table
from lance_ops.maintenance.debt import measure_debt
from lance_ops.maintenance.table_report import branches_begun, trend_svg, version_svg
from lance_ops.snapshot import Snapshot
from lance_ops.verbs import sample_of

__all__ = ["CHARTED", "overview", "timeline_markdown"]

CHARTED = 60
"""How many versions a chart shows."""

_LISTED = 20
"""How many versions the table of the timeline shows."""

_MESSAGE_LENGTH = 100
"""How much of a commit message the timeline shows; the version's own metadata has all of it."""


def overview(
    instance: dg.DagsterInstance, config: DatasetConfig, newest: Snapshot, past: Sequence[RecordedVersion]
) -> dict[str, Any]:
    """Return the metadata that only the newest of the recorded versions gets; `past` ends with this version.

    If the debt cannot be measured, for example because a tag's file is damaged, its place tells the reason.
    """
    charted = past[-CHARTED:]
    chart = image_address(version_svg(config.name, charted, branches_begun(newest)))
    trend = image_address(trend_svg(config.name, charted))
    metadata: dict[str, Any] = {
        "lance/timeline": dg.MetadataValue.md(f"![versions]({chart})\n\n{timeline_markdown(past[-_LISTED:])}"),
        "lance/trend": dg.MetadataValue.md(f"![trends]({trend})"),
    }
    if config.head.sample_rows:
        metadata["lance/sample"] = _sample(newest, config.head.sample_rows)
    metadata |= counted_orphans(instance, config)
    verified = last_intact_pass_at(instance, config)
    if verified is not None:
        metadata["lance/verified_at"] = dg.MetadataValue.timestamp(verified)
    try:
        past_steps = past_costs(instance, config)
        debt = measure_debt(newest, debt_policy(config), verified_at=verified, past_costs=past_steps)
    except LanceOpsError as error:
        return metadata | {"lance/debt": str(error)}
    growth = debt.inventory.growth
    if growth is not None:
        metadata["lance/growth_bytes_per_day"] = round(growth.bytes_per_day)
    verification = verification_due(instance, config, newest)
    owed = [due.key for due in debt.owed]
    if verification is not None and verification.is_owed:
        owed.append(VERIFY)
    return metadata | {
        "lance/owed": ", ".join(owed) or "nothing",
        "lance/owed_bytes": debt.rewrite_bytes,
        "lance/debt": dg.MetadataValue.md(debt_markdown(debt.dues, verification)),
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

"""Commands that only read: `inspect`, `versions`, `health`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import Enum
from functools import partial
from typing import Annotated, Any

import typer

from lance_ops.cli.arguments import (
    Json,
    OptionsFile,
    Reference,
    StorageOptions,
    Uri,
    duration,
    open_dataset,
    options_to_look,
)
from lance_ops.cli.output import (
    moment,
    number,
    percent,
    print_facts,
    print_json,
    print_line,
    print_table,
    size,
    watch,
)
from lance_ops.core.schema import Schema
from lance_ops.maintenance.health import HealthReport, IndexCoverage, Severity, index_coverage, timeline
from lance_ops.maintenance.health import health as measure_health

__all__ = ["FailOn", "health", "inspect", "versions"]


class FailOn(Enum):
    """The severity from which `health` exits with an error."""

    NEVER = "never"
    WARNING = "warning"
    ERROR = "error"


def inspect(
    uri: Uri,
    version: Reference = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Show what a dataset is: version, size, columns, indices, tags."""
    opened = open_dataset(uri, options_to_look(uri, storage_option, options_file), version)
    snapshot = opened.snapshot
    indices = index_coverage(snapshot)
    tags = {name: tag["version"] for name, tag in opened.tags.list().items()}
    facts = {
        "uri": opened.uri,
        "version": opened.version,
        "latest_version": opened.latest_version,
        "timestamp": snapshot.manifest.timestamp,
        "data_storage_version": opened.data_storage_version,
        "num_rows": snapshot.num_rows,
        "num_deleted_rows": snapshot.num_deleted_rows,
        "num_fragments": len(snapshot.fragments),
        "size_bytes": snapshot.size_bytes,
    }
    if as_json:
        columns = [
            {"id": field.id, "name": field.name, "type": str(field.arrow_type), "nullable": field.nullable}
            for field in snapshot.schema.fields
        ]
        print_json({**facts, "schema": columns, "indices": indices, "tags": tags, "config": opened.config()})
    else:
        _print_dataset(facts, snapshot.schema, indices, tags)


def _print_dataset(
    facts: Mapping[str, Any], schema: Schema, indices: Sequence[IndexCoverage], tags: Mapping[str, int]
) -> None:
    print_facts(
        {
            "dataset": facts["uri"],
            "version": f"{facts['version']} of {facts['latest_version']}, {moment(facts['timestamp'])} UTC",
            "rows": f"{number(facts['num_rows'])} live, {number(facts['num_deleted_rows'])} deleted",
            "fragments": f"{facts['num_fragments']} of file version {facts['data_storage_version']}",
            "size": size(facts["size_bytes"]),
            "tags": ", ".join(f"{name} (version {tagged})" for name, tagged in tags.items()) or "none",
        }
    )
    print_table(
        "columns",
        ["id>", "name", "type", "nulls"],
        [
            [str(field.id), field.name, str(field.arrow_type), "allowed" if field.nullable else "none"]
            for field in schema.fields
        ],
    )
    if indices:
        print_table(
            "indices",
            ["name", "type", "columns", "covers>", "size>"],
            [
                [
                    index.name,
                    index.type_name,
                    ", ".join(index.fields),
                    percent(index.indexed_ratio),
                    size(index.size_bytes),
                ]
                for index in indices
            ],
        )


def versions(
    uri: Uri,
    limit: Annotated[int | None, typer.Option(min=1, help="Show this many of the newest versions.")] = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """List the retained versions: what made each, and what it holds."""
    summaries = timeline(open_dataset(uri, options_to_look(uri, storage_option, options_file)).snapshot, limit)
    if as_json:
        print_json(summaries)
        return
    print_table(
        f"versions of {uri}",
        [
            "version>",
            "committed (UTC)",
            "operation",
            "rows>",
            "fragments>",
            "deleted>",
            "size>",
            "indexed>",
            "tags",
            "batches>",
        ],
        [
            [
                str(summary.version),
                moment(summary.timestamp),
                summary.operation,
                number(summary.num_rows),
                number(summary.num_fragments),
                number(summary.num_deleted_rows),
                size(summary.size_bytes),
                percent(summary.indexed_ratio),
                ", ".join(summary.tags),
                number(len(summary.batches)) if summary.batches else "",
            ]
            for summary in summaries
        ],
    )


def health(
    uri: Uri,
    fail_on: Annotated[FailOn, typer.Option(help="Exit with code 1 on a finding this severe.")] = FailOn.NEVER,
    every: Annotated[
        timedelta | None,
        typer.Option("--watch", parser=duration, metavar="DURATION", help="Show it again each 10s, say, until Ctrl-C."),
    ] = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Say what ails a dataset and which command helps."""
    options = options_to_look(uri, storage_option, options_file)

    def measured() -> HealthReport:
        return measure_health(open_dataset(uri, options).snapshot)

    if every is not None and not as_json:
        watch(measured, partial(_print_health, uri), every)
        return
    report = measured()
    if as_json:
        ratios = {"deleted_ratio": report.deleted_ratio, "indexed_ratio": report.indexed_ratio}
        print_json({field: getattr(report, field) for field in report.__dataclass_fields__} | ratios)
    else:
        _print_health(uri, report)
    severities = {finding.severity for finding in report.findings}
    fails = {FailOn.NEVER: set(), FailOn.WARNING: set(Severity), FailOn.ERROR: {Severity.ERROR}}[fail_on]
    if severities & fails:
        raise typer.Exit(1)


def _print_health(uri: str, report: HealthReport) -> None:
    print_facts(
        {
            "dataset": uri,
            "version": f"{report.version} ({report.num_versions} kept)",
            "rows": f"{number(report.num_rows)} live, {percent(report.deleted_ratio)} of the stored rows deleted",
            "fragments": f"{report.num_fragments}, {report.num_small_fragments} of them small",
            "size": size(report.size_bytes),
            "indexed": percent(report.indexed_ratio),
        }
    )
    if report.is_healthy:
        print_line("healthy: nothing to do", "green")
        return
    print_table(
        "findings",
        ["severity", "what", "advice"],
        [[finding.severity.value, finding.what, finding.advice] for finding in report.findings],
    )

"""The command `verify`, which looks for damages."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_ops.cli.arguments import (
    Json,
    Reference,
    StorageOptions,
    Uri,
    open_dataset,
    reference,
    storage_options,
)
from lance_ops.cli.output import counted, print_json, print_line, print_table, size
from lance_ops.maintenance.verification import (
    VerificationLevel,
    VerificationOptions,
    VerificationReport,
    verify_uri,
)

__all__ = ["verify"]

_SHOWN = 100


def verify(
    uri: Uri,
    version: Reference = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only presence, sizes and metadata of files.")] = False,
    all_versions: Annotated[bool, typer.Option("--all-versions", help="Also the other retained versions.")] = False,
    storage_option: StorageOptions = None,
    as_json: Json = False,
) -> None:
    """Look for missing and damaged files, wrong row counts and index entries; exit with code 1 if there are any."""
    level = VerificationLevel.QUICK if quick else VerificationLevel.FULL
    wanted = reference(version)
    if isinstance(wanted, str):
        wanted = open_dataset(uri, storage_option, version).version
    report = verify_uri(uri, wanted, storage_options(storage_option), VerificationOptions(level, all_versions))
    if as_json:
        print_json(report.to_dict())
    else:
        _print_report(report)
    if not report.ok:
        raise typer.Exit(1)


def _print_report(report: VerificationReport) -> None:
    checked = f"{counted(report.num_files, 'file')}, {size(report.size_bytes)}, {report.level.value} verification"
    if report.ok:
        print_line(f"version {report.version} is whole: {checked}", "green")
    else:
        print_line(f"version {report.version} has {counted(len(report.damages), 'damage')}: {checked}", "red")
    if report.files_with_checksums or report.files_without_checksums:
        print_line(
            f"{counted(len(report.files_with_checksums), 'file')} with checksums, "
            f"{len(report.files_without_checksums)} without"
        )
    if report.findings:
        print_table(
            "findings",
            ["severity", "kind", "fragment>", "index", "file", "detail"],
            [
                [
                    finding.severity.value,
                    finding.kind.value,
                    "" if finding.fragment_id is None else str(finding.fragment_id),
                    finding.index_name or "",
                    finding.path or "",
                    finding.detail if finding.column is None else f"column {finding.column}: {finding.detail}",
                ]
                for finding in report.findings[:_SHOWN]
            ],
        )
    if len(report.findings) > _SHOWN:
        print_line(f"… and {len(report.findings) - _SHOWN} more: --json lists all")

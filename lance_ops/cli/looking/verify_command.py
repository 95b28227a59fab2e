"""The command `verify`, which looks for damages."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_ops import verbs
from lance_ops.cli.arguments import (
    DryRun,
    Json,
    OnSpark,
    OptionsFile,
    Reference,
    StorageOptions,
    Uri,
    help_of,
    open_dataset,
    open_readable,
    options_to_work,
    reference,
    runner,
)
from lance_ops.cli.outcomes import preview_and_print
from lance_ops.cli.output import counted, print_json, print_line, print_table, size
from lance_ops.core.errors import CorruptFile
from lance_ops.maintenance.verification import VerificationLevel, VerificationOptions, VerificationReport, verify_uri

__all__ = ["verify"]

_SHOWN = 100


def verify(
    uri: Uri,
    version: Reference = None,
    quick: Annotated[bool, typer.Option("--quick", help="Check only presence, sizes and metadata of files.")] = False,
    all_versions: Annotated[bool, typer.Option("--all-versions", help=help_of(verbs.Verify, "all_versions"))] = False,
    max_megabytes: Annotated[int, typer.Option(min=0, help=help_of(verbs.Verify, "max_megabytes"))] = 0,
    first_part: Annotated[int, typer.Option(min=0, help=help_of(verbs.Verify, "first_part"))] = 0,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Look for missing and damaged files, wrong row counts and index entries; exit with code 1 if there are any."""
    wanted, options = reference(version), options_to_work(uri, storage_option, options_file, only_looks=dry_run)
    if isinstance(wanted, str):
        wanted = open_dataset(uri, options, version).version
    verb = verbs.Verify("quick" if quick else "full", wanted, all_versions, max_megabytes, first_part)
    report: VerificationReport
    try:
        opened = open_readable(uri, options)
    except CorruptFile:  # no version is left for the verb to work on
        if dry_run:
            raise
        report = verify_uri(uri, wanted, options, VerificationOptions(VerificationLevel(verb.level)))
    else:
        if dry_run:
            preview_and_print(verb, opened, runner(None), as_json=as_json)
            return
        report = verbs.do_now(verb, opened, runner(spark)).outcome
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
    if report.next_part is not None:
        print_line(f"other files are left: go on with --first-part {report.next_part}", "yellow")
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

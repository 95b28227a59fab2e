"""The command `fleet`: maintain all tables beneath a root within a budget, the worst debt first."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from lance_ops.cli.arguments import (
    DryRun,
    Json,
    OnSpark,
    OptionsFile,
    StorageOptions,
    byte_count,
    duration,
    options_to_work,
    runner,
)
from lance_ops.cli.looking import OlderThan, TargetRows, policy_of
from lance_ops.cli.output import number, print_json, print_line, print_table, size
from lance_ops.maintenance.fleet import Budget, FleetReport, FleetStatus, TableOutcome, maintain, why_excluded

__all__ = ["fleet"]


def fleet(
    root: Annotated[str, typer.Argument(metavar="ROOT", help="A folder or prefix; every Lance table beneath it.")],
    budget: Annotated[
        int | None,
        typer.Option(
            parser=byte_count,
            metavar="SIZE",
            help="Rewrite and verify at most this much, such as 50GB (10^9) or 50GiB (2^30); default: all.",
        ),
    ] = None,
    max_minutes: Annotated[float | None, typer.Option(min=0, help="Begin no table after this many minutes.")] = None,
    max_tables: Annotated[int | None, typer.Option(min=0, help="Maintain at most this many tables.")] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GLOB",
            help="Leave out tables whose path beneath ROOT matches; * matches /, too; may be repeated.",
        ),
    ] = None,
    failure_threshold: Annotated[
        float,
        typer.Option(min=0, max=1, help="If a larger share of the tables fails, begin no other table and exit with 1."),
    ] = 0.1,
    target_rows: TargetRows = 1024 * 1024,
    older_than: OlderThan = None,
    verify_after: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration, metavar="DURATION", help="Verify tables that were not verified for this long, such as 30d."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List tables that owe nothing, too.")] = False,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Maintain every table beneath a root within a budget, the worst debt first."""
    report = maintain(
        root,
        Budget(budget, None if max_minutes is None else 60 * max_minutes, max_tables),
        policy_of(target_rows, older_than),
        failure_threshold=failure_threshold,
        verify_after=verify_after,
        dry_run=dry_run,
        storage_options=options_to_work(root, storage_option, options_file, only_looks=dry_run),
        runner=runner(spark),
        leave_out=why_excluded(exclude or ()),
    )
    if as_json:
        print_json(
            {**vars(report), "spent_bytes": report.spent_bytes, "moved_bytes": report.moved_bytes, "ok": report.ok}
        )
    else:
        _print_report(report, every=every)
    if not report.ok:
        raise typer.Exit(1)


def _print_report(report: FleetReport, *, every: bool) -> None:
    shown = [each for each in report.outcomes if every or each.reason or each.status is not FleetStatus.NOTHING_OWED]
    if shown:
        print_table(
            "would be done" if report.dry_run else "done",
            ["table", "state", "fragments>", "a read costs>", "price>", "moved>", "a read saves>", "what"],
            [_line(each) for each in shown],
        )
    print_line(report.sentence)
    verb = "would rewrite" if report.dry_run else "rewrote"
    print_line(
        f"{verb} {size(report.spent_bytes)}; "
        f"a read of every table saves as much as reading {size(report.saved_read_bytes)}"
    )
    if not report.ok:
        print_line(f"{report.failed_ratio:.0%} of the tables failed, more than {report.failure_threshold:.0%}", "red")


def _line(each: TableOutcome) -> list[str]:
    before, after = number(each.num_fragments_before), number(each.num_fragments_after)
    return [
        each.table,
        each.status.value,
        before if before == after else f"{before} → {after}",
        f"{each.amplification_before:.1f} → {each.amplification_after:.1f}",
        size(each.spent_bytes),
        size(each.moved_bytes),
        size(each.saved_read_bytes),
        "; ".join([*each.steps, *([each.reason] if each.reason else [])]),
    ]

"""The command `repair`, which mends what a verification finds damaged."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_ops import verbs
from lance_ops.cli.arguments import (
    DryRun,
    Json,
    OnSpark,
    OptionsFile,
    StorageOptions,
    Uri,
    help_of,
    open_readable,
    options_to_work,
    runner,
)
from lance_ops.cli.output import print_json, print_line
from lance_ops.maintenance.repair import RepairPlan, RepairResult

__all__ = ["repair"]


def repair(
    uri: Uri,
    copy: Annotated[
        str | None, typer.Option("--copy", metavar="URI", help="A copy of the dataset's folder, or a deep clone.")
    ] = None,
    restore_older_version: Annotated[
        bool, typer.Option("--restore-older-version", help=help_of(verbs.Repair, "restore_older_version"))
    ] = False,
    drop_damaged_rows: Annotated[
        bool, typer.Option("--drop-damaged-rows", help=help_of(verbs.Repair, "drop_damaged_rows"))
    ] = False,
    delete_dangling_tags: Annotated[
        bool, typer.Option("--delete-dangling-tags", help=help_of(verbs.Repair, "delete_dangling_tags"))
    ] = False,
    dry_run: DryRun = False,
    spark: OnSpark = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Verify the newest version and mend what can be mended; exit with code 1 if something cannot be mended."""
    opened = open_readable(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    plan = opened.plan_repair(
        copy=copy,
        restore_older_version=restore_older_version,
        drop_damaged_rows=drop_damaged_rows,
        delete_dangling_tags=delete_dangling_tags,
        runner=runner(spark),
    )
    result = None if dry_run else opened.repair(plan)
    if as_json:
        print_json({**plan.to_dict(), "result": result and result.to_dict(), "dry_run": dry_run})
    else:
        _print_repair(plan, result)
    if plan.refusals or (result is not None and result.failed):
        raise typer.Exit(1)


def _print_repair(plan: RepairPlan, result: RepairResult | None) -> None:
    if not plan.actions and not plan.refusals:
        print_line(f"version {plan.version} is whole: nothing to repair", "green")
    would = "would " if result is None else ""
    failed = dict(result.failed if result is not None else ())
    for action in plan.actions:
        error = failed.get(action.explanation)
        outcome = "" if error is None else f"; it failed: {error}"
        print_line(f"{would}{action.name}: {action.explanation}{outcome}", "" if error is None else "red")
    for refusal in plan.refusals:
        print_line(f"not mended: {refusal.damage}: {refusal.reason}", "yellow")
    if result is not None and result.applied:
        print_line(f"version {result.version} is the newest; run verify again")

"""The command `debt`: what a dataset owes, what paying costs, and what each read would gain."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from lance_ops.cli.arguments import Json, OptionsFile, StorageOptions, Uri, duration, open_dataset, options_to_look
from lance_ops.cli.output import number, percent, print_facts, print_json, print_line, print_table, size
from lance_ops.maintenance.cleanup import CleanupOptions
from lance_ops.maintenance.compaction import CompactionOptions
from lance_ops.maintenance.debt import DebtPolicy, Due, TableDebt, measure_debt
from lance_ops.maintenance.health import HealthThresholds, rows_of_small_fragments

__all__ = ["OlderThan", "Orphans", "TargetRows", "debt", "debt_facts", "policy_of"]

TargetRows = Annotated[
    int,
    typer.Option(
        "--target-rows",
        min=1,
        help="The rows that a compaction aims at; a fragment with less than three quarters is small.",
    ),
]
OlderThan = Annotated[
    timedelta | None,
    typer.Option(
        parser=duration, metavar="DURATION", help="Versions older than this may go, such as 14d, the default."
    ),
]
Orphans = Annotated[bool, typer.Option("--orphans", help="List all files to count those no version names.")]


def debt(
    uri: Uri,
    target_rows: TargetRows = 1024 * 1024,
    older_than: OlderThan = None,
    orphans: Orphans = False,
    fail_if_owed: Annotated[bool, typer.Option("--fail-if-owed", help="Exit with code 1 if a step is owed.")] = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Say what a dataset owes: the steps worth taking, their cost in bytes, and what each read gains."""
    opened = open_dataset(uri, options_to_look(uri, storage_option, options_file))
    found = measure_debt(opened.snapshot, policy_of(target_rows, older_than), orphans=orphans)
    if as_json:
        print_json(debt_facts(found))
    else:
        _print_debt(uri, found)
    if fail_if_owed and found.owed:
        raise typer.Exit(1)


def policy_of(target_rows: int, older_than: timedelta | None) -> DebtPolicy:
    """Return the default policy with other targets."""
    return DebtPolicy(
        limits=HealthThresholds(small_fragment_rows=rows_of_small_fragments(target_rows)),
        compaction=CompactionOptions(target_rows_per_fragment=target_rows),
        cleanup=CleanupOptions(older_than=older_than),
    )


def debt_facts(found: TableDebt) -> dict[str, object]:
    """Return what JSON tells of a debt: its price and its steps, without the fragments of each."""
    return {
        "uri": found.uri,
        "version": found.version,
        "read_amplification": found.read_amplification,
        "read_bytes": found.read_bytes,
        "ideal_read_bytes": found.ideal_read_bytes,
        "rewrite_bytes": found.rewrite_bytes,
        "score": found.score,
        "inventory": found.inventory,
        "dues": [_due(due) for due in found.dues],
    }


def _due(due: Due) -> dict[str, object]:
    return {
        "step": due.key,
        "what": due.what,
        "is_owed": due.is_owed,
        "gain_bytes": due.gain_bytes,
        "freed_bytes": due.freed_bytes,
        "cost_bytes": due.cost_bytes,
        "blocked": due.blocked,
    }


def _print_debt(uri: str, found: TableDebt) -> None:
    report, inventory = found.health, found.inventory
    facts = {
        "dataset": uri,
        "version": f"{found.version} ({inventory.num_versions} kept, {inventory.num_removable_versions} may go)",
        "fragments": f"{number(report.num_fragments)}, {number(report.num_small_fragments)} of them small",
        "deleted": percent(report.deleted_ratio),
        "a read costs": f"{found.read_amplification:.2f} times as much as it would without debt",
    }
    if inventory.growth is not None:
        facts["growth"] = f"{size(round(inventory.growth.bytes_per_day))} a day"
    if inventory.orphan_bytes is not None:
        facts["orphaned files"] = size(inventory.orphan_bytes)
    print_facts(facts)
    if not found.dues:
        print_line("no step would help", "green")
        return
    print_table(
        "dues",
        ["step", "owed", "why", "a read or look-up gains>", "rewrites>", "frees at least>"],
        [
            [
                due.key,
                due.owed_text,
                due.why,
                size(due.gain_bytes),
                size(due.cost_bytes),
                size(due.freed_bytes),
            ]
            for due in found.dues
        ],
    )

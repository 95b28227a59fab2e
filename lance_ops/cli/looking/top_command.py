"""The command `top`: the tables beneath a root as they are now, the worst debt first."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Annotated

import typer

from lance_ops.cli.arguments import Json, OptionsFile, StorageOptions, duration, options_to_look
from lance_ops.cli.looking.debt_command import OlderThan, TargetRows, debt_facts, policy_of
from lance_ops.cli.output import counted, number, print_json, print_line, print_table, size, watch
from lance_ops.maintenance.fleet import Measured, measure_fleet

__all__ = ["top"]

_EVERY = timedelta(seconds=10)


def top(
    root: Annotated[str, typer.Argument(metavar="ROOT", help="A folder or prefix; every Lance table beneath it.")],
    every: Annotated[
        timedelta | None,
        typer.Option(parser=duration, metavar="DURATION", help="The time between two measurements; default: 10s."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Show it once; a pipe always gets it once.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many tables.")] = 40,
    target_rows: TargetRows = 1024 * 1024,
    older_than: OlderThan = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Show what each table beneath a root owes, the worst debt first, until Ctrl-C. Nothing is changed."""
    measure = partial(
        measure_fleet,
        root,
        policy_of(target_rows, older_than),
        storage_options=options_to_look(root, storage_option, options_file),
    )
    if as_json:
        print_json([_facts(each) for each in measure()])
    elif once:
        _print(root, limit, measure())
    else:
        watch(measure, partial(_print, root, limit), _EVERY if every is None else every)


def _facts(each: Measured) -> dict[str, object]:
    debt = None if each.debt is None else debt_facts(each.debt)
    return {"table": each.table, "debt": debt, "reason": each.reason}


def _print(root: str, limit: int, found: list[Measured]) -> None:
    owing = sum(each.debt is not None and bool(each.debt.owed) for each in found)
    failed = sum(each.debt is None for each in found)
    print_table(
        f"{counted(len(found), 'table')} beneath {root}: {number(owing)} owing, {number(failed)} not measured",
        ["table", "version>", "rows>", "fragments>", "size>", "a read costs>", "to rewrite>", "owed"],
        [_line(each) for each in found[:limit]],
    )
    if len(found) > limit:
        print_line(f"{counted(len(found) - limit, 'more table')}: --limit or --json")


def _line(each: Measured) -> list[str]:
    debt = each.debt
    if debt is None:
        return [each.table, *[""] * 6, each.reason or "not measured"]
    return [
        each.table,
        str(debt.version),
        number(debt.health.num_rows),
        number(debt.health.num_fragments),
        size(debt.health.size_bytes),
        f"{debt.read_amplification:.1f}x",
        size(debt.rewrite_bytes),
        ", ".join(due.key for due in debt.owed) or "nothing",
    ]

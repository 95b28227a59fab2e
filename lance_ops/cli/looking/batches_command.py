"""The command `batches`: in which state each batch of a landing folder is, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lance_ops.cli import extras
from lance_ops.cli.arguments import Json
from lance_ops.cli.output import counted, moment, number, print_json, print_line, print_table, size

__all__ = ["batches"]

_SHOWN = 50


def batches(
    declaration: Annotated[Path, typer.Argument(metavar="DECLARATION.yaml", help="The YAML that declares a dataset.")],
    state: Annotated[
        list[str] | None, typer.Option(help="Show only batches in this state, such as quarantined; may be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Name this many batches, those that need somebody first.")] = _SHOWN,
    as_json: Json = False,
) -> None:
    """Say in which state each landed batch is; exit with code 1 if a batch or a file that is set aside needs somebody.

    DAGSTER_HOME names the runs.
    """
    report = extras.report_of(declaration)
    wanted = set(state or extras.STATES)
    if unknown := wanted.difference(extras.STATES):
        raise typer.BadParameter(f"{min(unknown)} is none of {', '.join(extras.STATES)}", param_hint="--state")
    found = [batch for batch in report.batches if batch.state.value in wanted]
    if as_json:
        print_json(
            {
                "counts": report.counts,
                "unsettled": len(report.unsettled),
                "batches": found,
                "set_aside": report.set_aside,
                "empty": report.empty,
                "outside_glob": report.outside,
            }
        )
    else:
        print_table(
            ", ".join(f"{number(count)} {name}" for name, count in report.counts.items()) or "no batch has landed",
            ["batch", "state", "", "version>", "files>", "size>", "modified", "why"],
            [
                [
                    batch.key,
                    batch.state.value,
                    "late" if batch.is_late else "",
                    "-" if batch.version is None else str(batch.version),
                    number(batch.num_files),
                    size(batch.size_bytes),
                    moment(batch.modified),
                    batch.reason,
                ]
                for batch in found[:limit]
            ],
        )
        if len(found) > limit:
            more = len(found) - limit
            print_line(f"{number(more)} more {'batch' if more == 1 else 'batches'}: --limit, --state or --json")
        for sentence in report.set_aside[:limit]:
            print_line(sentence, "yellow")
        if len(report.set_aside) > limit:
            print_line(f"{counted(len(report.set_aside) - limit, 'more file')} set aside: --limit or --json", "yellow")
        for path in report.empty:
            print_line(f"{path}: 0 bytes, left out", "yellow")
        for sentence in report.outside.sentences:
            print_line(sentence, "yellow")
    if report.unsettled or report.set_aside:
        raise typer.Exit(1)

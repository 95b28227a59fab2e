"""The command `report`: a table's health as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lance_ops.cli.arguments import Json, OptionsFile, StorageOptions, Uri, open_dataset, options_to_look
from lance_ops.cli.looking.debt_command import OlderThan, TargetRows, debt_facts, policy_of
from lance_ops.cli.output import print_json, print_line
from lance_ops.core.errors import InvalidInput
from lance_ops.maintenance.table_report import report_page, report_table

__all__ = ["report"]


def report(
    uri: Uri,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the page here; default: stdout.")
    ] = None,
    max_versions: Annotated[int, typer.Option(min=1, help="Show at most this many versions.")] = 60,
    target_rows: TargetRows = 1024 * 1024,
    older_than: OlderThan = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Write a table's health, debt, columns and versions as one HTML page with charts."""
    opened = open_dataset(uri, options_to_look(uri, storage_option, options_file))
    measured = report_table(opened.snapshot, policy_of(target_rows, older_than), max_versions=max_versions)
    if as_json:
        debt = None if measured.debt is None else debt_facts(measured.debt)
        print_json({**vars(measured), "debt": debt})
    elif output is None:
        typer.echo(report_page(measured), nl=False)
    if output is None:
        return
    try:
        output.write_text(report_page(measured), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{output}: the page cannot be written: {error.strerror}") from error
    if not as_json:
        print_line(f"written: {output}")

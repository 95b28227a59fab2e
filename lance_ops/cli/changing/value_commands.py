"""Commands that compute values of rows: `update` and `add-columns`."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_ops.cli.arguments import (
    DryRun,
    Json,
    OnSpark,
    OptionsFile,
    StorageOptions,
    Uri,
    open_dataset,
    runner,
    storage_options,
)
from lance_ops.cli.output import counted, print_json, print_line

__all__ = ["add_columns", "update"]

Expressions = Annotated[
    list[str], typer.Argument(metavar="COLUMN=SQL…", help='Values over those of the row, such as "delay=delay / 60".')
]


def update(
    uri: Uri,
    values: Expressions,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Only rows for which it is true.")] = None,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Set columns of rows to values of SQL expressions, as one version."""
    by_column = _by_column(values)
    opened = open_dataset(uri, storage_options(storage_option, options_file))
    before = opened.version
    if dry_run:
        num_rows = opened.count_rows(where, runner=runner(spark))
    else:
        num_rows = opened.update(by_column, where, runner=runner(spark))["num_rows_updated"]
    if as_json:
        print_json({"num_rows_updated": num_rows, "version": opened.version, "dry_run": dry_run})
    elif dry_run:
        print_line(f"{counted(num_rows, 'row')} would change; nothing was updated")
    elif opened.version == before:
        print_line(f"no row matches; version {before} stays")
    else:
        print_line(f"updated {counted(num_rows, 'row')}: version {opened.version}")


def add_columns(
    uri: Uri,
    values: Expressions,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Keep finished files under this name, so that the command can go on."),
    ] = None,
    spark: OnSpark = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Add columns of SQL expressions, as one version; the other columns are not rewritten."""
    by_column = _by_column(values)
    opened = open_dataset(uri, storage_options(storage_option, options_file))
    opened.add_columns(by_column, runner=runner(spark), checkpoint=checkpoint)
    types = {name: str(opened.schema.field(name).type) for name in by_column}
    if as_json:
        print_json({"added": types, "version": opened.version})
    else:
        added = ", ".join(f"{name} ({arrow_type})" for name, arrow_type in types.items())
        print_line(f"added {added}: version {opened.version}")


def _by_column(values: list[str]) -> dict[str, str]:
    """Return the expressions by column; raise for a word without `=` and for a column that is named twice."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, expression = value.partition("=")
        if not (name.strip() and equals and expression.strip()):
            raise typer.BadParameter(f"{value!r} is not COLUMN=SQL", param_hint="COLUMN=SQL")
        if name.strip() in found:
            raise typer.BadParameter(f"column {name.strip()!r} is given twice", param_hint="COLUMN=SQL")
        found[name.strip()] = expression
    return found

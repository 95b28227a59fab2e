"""Commands that compute values of rows: `update` and `add-columns`."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_ops import verbs
from lance_ops.cli.arguments import (
    AtMostRows,
    DryRun,
    Json,
    OnSpark,
    OptionsFile,
    Reason,
    StorageOptions,
    Uri,
    help_of,
    open_dataset,
    options_to_work,
    runner,
)
from lance_ops.cli.outcomes import preview_and_print, print_outcome
from lance_ops.cli.output import counted

__all__ = ["add_columns", "update"]

Expressions = Annotated[
    list[str] | None,
    typer.Argument(metavar="COLUMN=SQL…", help='Values over those of the row, such as "delay=delay / 60".'),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="A raw file with values and the column _rowaddr or _rowid of their rows; may be repeated.",
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Keep finished files under this name, so that the command can go on."),
]


def update(
    uri: Uri,
    values: Expressions = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Only rows for which SQL is true.")] = None,
    files: Files = None,
    checkpoint: Checkpoint = None,
    reason: Reason = "",
    at_most_rows: AtMostRows = None,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Set columns of rows to values of SQL expressions, or of files that name the rows, as one version."""
    verb = verbs.Update(_by_column(values, files), where, reason, at_most_rows, tuple(files or ()), checkpoint)
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    if dry_run:
        preview_and_print(verb, opened, runner(spark), as_json=as_json)
        return
    done = verbs.do_now(verb, opened, runner(spark))
    num_rows = int(done.facts["matching_rows"])
    what = f"updated {counted(num_rows, 'row')}"
    print_outcome(done, {"num_rows_updated": num_rows}, as_json=as_json, what=what, nothing="no row matches")


def add_columns(
    uri: Uri,
    values: Expressions = None,
    files: Files = None,
    function: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help=help_of(verbs.AddColumns, "function"))
    ] = None,
    read_column: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help=help_of(verbs.AddColumns, "read_columns"))
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help=help_of(verbs.AddColumns, "batch_size"))] = None,
    checkpoint: Checkpoint = None,
    reason: Reason = "",
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Add columns of SQL expressions, of a function, or of files that name rows, as one version.

    Other columns are not rewritten.
    """
    verb = verbs.AddColumns(
        _by_column(values, files, function),
        function,
        tuple(read_column or ()),
        batch_size,
        checkpoint,
        reason,
        tuple(files or ()),
    )
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    if dry_run:
        preview_and_print(verb, opened, runner(spark), as_json=as_json)
        return
    before = set(opened.schema.names)
    done = verbs.do_now(verb, opened, runner(spark))
    schema = opened.checkout_version(done.version).schema
    types = {field.name: str(field.type) for field in schema if field.name not in before}
    added = ", ".join(f"{name} ({arrow_type})" for name, arrow_type in types.items())
    print_outcome(done, {"added": types}, as_json=as_json, what=f"added {added}", nothing="no column is new")


def _by_column(values: list[str] | None, *others: object) -> dict[str, str]:
    """Return the expressions by column; raise for a word without `=` and for a column that is named twice.

    Raises as well unless exactly one is given: expressions, or one of the others.
    """
    if sum(map(bool, (values, *others))) != 1:
        raise typer.BadParameter("give either expressions or --from, or another source", param_hint="COLUMN=SQL")
    found: dict[str, str] = {}
    for value in values or ():
        name, equals, expression = value.partition("=")
        if not (name.strip() and equals and expression.strip()):
            raise typer.BadParameter(f"{value!r} is not COLUMN=SQL", param_hint="COLUMN=SQL")
        if name.strip() in found:
            raise typer.BadParameter(f"column {name.strip()!r} is given twice", param_hint="COLUMN=SQL")
        found[name.strip()] = expression
    return found

"""Commands that compute values of rows: `update` and `add-columns`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from lance_ops import verbs
from lance_ops.api import LanceDataset
from lance_ops.cli import runners
from lance_ops.cli.arguments import (
    AtMostRows,
    DryRun,
    Json,
    OnSpark,
    OptionsFile,
    Reason,
    StorageOptions,
    Uri,
    open_dataset,
    runner,
    storage_options,
)
from lance_ops.cli.outcomes import preview_and_print, print_dry_run, print_outcome
from lance_ops.cli.output import counted, number
from lance_ops.core.arrow import pads
from lance_ops.reading import ROW_ADDRESS, ROW_ID
from lance_ops.runners import Runner

__all__ = ["add_columns", "update"]

_SHOWN_ROWS = 5

Expressions = Annotated[
    list[str] | None,
    typer.Argument(metavar="COLUMN=SQL…", help='Values over those of the row, such as "delay=delay / 60".'),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="A Parquet file with values and the column _rowaddr or _rowid of their rows; may be repeated.",
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
    by_column = _by_column(values, files)
    _check_for_expressions(files, {"--where": where is not None, "--at-most-rows": at_most_rows is not None})
    if checkpoint is not None and not files:
        raise typer.BadParameter("--checkpoint needs --from", param_hint="--checkpoint")
    opened = open_dataset(uri, storage_options(storage_option, options_file))
    if files and dry_run:
        print_dry_run(_preview_of_files(opened, files, adds=False), as_json=as_json)
        return
    used = runner(spark)
    if files:
        before, rows = opened.version, _rows_of(files, used, spark)
        properties = verbs.reason_properties(reason)
        made = opened.update_columns(rows, runner=used, checkpoint=checkpoint, transaction_properties=properties)
        num_rows, version = made["num_rows_updated"], opened.version
    else:
        verb = verbs.Update(by_column, where, reason, at_most_rows)
        if dry_run:
            preview_and_print(verb, opened, used, as_json=as_json)
            return
        done = verbs.do_now(verb, opened, used)
        before, num_rows, version = done.read_version, int(done.facts["matching_rows"]), done.version
    facts = {"num_rows_updated": num_rows}
    print_outcome(
        before, version, facts, as_json=as_json, done=f"updated {counted(num_rows, 'row')}", nothing="no row matches"
    )


def add_columns(
    uri: Uri,
    values: Expressions = None,
    files: Files = None,
    checkpoint: Checkpoint = None,
    reason: Reason = "",
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Add columns of SQL expressions, or of files that name rows, as one version; other columns are not rewritten."""
    by_column = _by_column(values, files)
    opened = open_dataset(uri, storage_options(storage_option, options_file))
    if files and dry_run:
        print_dry_run(_preview_of_files(opened, files, adds=True), as_json=as_json)
        return
    if dry_run:
        preview_and_print(verbs.AddColumns(by_column), opened, runner(None), as_json=as_json)
        return
    version, before, used = opened.version, set(opened.schema.names), runner(spark)
    transforms = _rows_of(files, used, spark) if files else by_column
    properties = verbs.reason_properties(reason)
    opened.add_columns(transforms, runner=used, checkpoint=checkpoint, transaction_properties=properties)
    types = {field.name: str(field.type) for field in opened.schema if field.name not in before}
    added = ", ".join(f"{name} ({arrow_type})" for name, arrow_type in types.items())
    print_outcome(
        version, opened.version, {"added": types}, as_json=as_json, done=f"added {added}", nothing="no column is new"
    )


def _check_for_expressions(files: list[str] | None, given: Mapping[str, bool]) -> None:
    """Refuse options that make sense for expressions only."""
    option = next((name for name, is_given in given.items() if is_given), None)
    if files and option is not None:
        raise typer.BadParameter(f"{option} needs expressions; it does not work with --from", param_hint=option)


def _rows_of(files: list[str], used: Runner, spark: str | None) -> Any:
    """Return the rows of Parquet files as what a verb reads: a stream, or a DataFrame where Spark runs the tasks."""
    if spark is not None:
        return runners.read_parquet(used, files)
    return pads.dataset(files, format="parquet").scanner().to_reader()


def _preview_of_files(opened: LanceDataset, files: list[str], *, adds: bool) -> verbs.Preview:
    """Say which columns files hold, and for how many rows. Which rows they name is found when they are read."""
    rows = pads.dataset(files, format="parquet")
    keys = [name for name in (ROW_ADDRESS, ROW_ID) if name in rows.schema.names]
    if not keys:
        raise typer.BadParameter(f"the files have neither {ROW_ADDRESS} nor {ROW_ID}", param_hint="--from")
    values = [field for field in rows.schema if field.name not in keys]
    wrong = [field.name for field in values if (field.name in opened.schema.names) == adds]
    if wrong:
        exists = "has column" if adds else "has no column"
        raise typer.BadParameter(f"{opened.uri} {exists} {wrong[0]!r}", param_hint="--from")
    num_rows, before = rows.count_rows(), verbs.Measures.of(opened)
    names = ", ".join(field.name for field in values)
    types = tuple((field.name, str(field.type)) for field in values)
    size = sum(info.size for info in rows.filesystem.get_file_info(rows.files))
    return verbs.Preview(
        f"{'add' if adds else 'set'} {names} of {number(num_rows)} rows that files name, of {number(before.rows)}",
        before,
        reads_bytes=size,
        writes_bytes=size,
        sections=(
            verbs.Section("Columns", ("column", "type"), types),
            verbs.sample_section("First rows of the files", rows.head(_SHOWN_ROWS)),
        ),
        facts={"named_rows": num_rows},
        does_nothing=num_rows == 0,
    )


def _by_column(values: list[str] | None, files: list[str] | None) -> dict[str, str]:
    """Return the expressions by column; raise for a word without `=` and for a column that is named twice.

    Raises as well unless there are either expressions or files.
    """
    if bool(values) == bool(files):
        raise typer.BadParameter("give either expressions or --from", param_hint="COLUMN=SQL")
    found: dict[str, str] = {}
    for value in values or ():
        name, equals, expression = value.partition("=")
        if not (name.strip() and equals and expression.strip()):
            raise typer.BadParameter(f"{value!r} is not COLUMN=SQL", param_hint="COLUMN=SQL")
        if name.strip() in found:
            raise typer.BadParameter(f"column {name.strip()!r} is given twice", param_hint="COLUMN=SQL")
        found[name.strip()] = expression
    return found

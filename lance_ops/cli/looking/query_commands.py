"""Commands that read rows and change nothing: `query`, `count`, `statistics`."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Annotated, Any

import pyarrow as pa
import typer

from lance_ops.cli.arguments import (
    Json,
    OnSpark,
    OptionsFile,
    Reference,
    StorageOptions,
    Uri,
    open_dataset,
    options_to_look,
    runner,
)
from lance_ops.cli.output import counted, json_text, number, print_json, print_line, print_table
from lance_ops.core.arrow import is_number
from lance_ops.core.schema import ColumnOrdering

__all__ = ["count", "query", "statistics"]

_SHOWN_CHARACTERS = 60


def query(
    uri: Uri,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Only rows for which SQL is true.")] = None,
    column: Annotated[
        list[str] | None, typer.Option("--column", metavar="COLUMN", help="Print this one; may be repeated.")
    ] = None,
    order_by: Annotated[str | None, typer.Option(metavar="COLUMN", help="Print the rows in its order.")] = None,
    descending: Annotated[bool, typer.Option("--descending", help="Print the highest first.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="Print at most this many rows.")] = 20,
    explain: Annotated[bool, typer.Option("--explain", help="Print how the rows would be found, instead.")] = False,
    version: Reference = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Print rows, with --json one JSON object a line (bytes in base64, NaN as text).

    Indices and statistics answer what they can.
    """
    opened = open_dataset(uri, options_to_look(uri, storage_option, options_file), version)
    order = None if order_by is None else [ColumnOrdering(order_by, ascending=not descending)]
    scanner = opened.scanner(columns=column, filter=where, limit=limit, order_by=order)
    if explain:
        print_line(scanner.explain_plan(verbose=True))
        return
    rows = scanner.to_table()
    if as_json:
        for row in rows.to_pylist():
            typer.echo(json_text(row, default=_json_value))
    else:
        cells = [[_cell(value) for value in column_values] for column_values in rows.columns]
        headings = [f"{field.name}>" if is_number(field.type) else field.name for field in rows.schema]
        print_table(counted(rows.num_rows, "row"), headings, zip(*cells, strict=True))


def count(
    uri: Uri,
    predicate: Annotated[
        str | None, typer.Argument(metavar="[PREDICATE]", help="Only rows for which PREDICATE is true.")
    ] = None,
    spark: OnSpark = None,
    version: Reference = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Count rows; without a PREDICATE no row is read."""
    opened = open_dataset(uri, options_to_look(uri, storage_option, options_file), version)
    num_rows = opened.count_rows(predicate, runner=None if predicate is None else runner(spark))
    if as_json:
        print_json({"num_rows": num_rows, "version": opened.version})
    else:
        print_line(counted(num_rows, "row"))


def statistics(
    uri: Uri,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", metavar="COLUMN", help="Measure this one; may be repeated. Default: all with an order."
        ),
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="SQL", help="Only rows for which SQL is true.")] = None,
    spark: OnSpark = None,
    version: Reference = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Measure columns: nulls, the least and the greatest value, and about how many values are distinct."""
    opened = open_dataset(uri, options_to_look(uri, storage_option, options_file), version)
    found = opened.stats.column_stats(column, where, runner=runner(spark))
    if as_json:
        measured = {name: asdict(each) for name, each in found.items()}
        typer.echo(json_text(measured, default=_json_value, indent=2))
        return
    rows = [
        [name, number(each.num_nulls), _text(each.min), _text(each.max), number(each.num_distinct)]
        for name, each in found.items()
    ]
    num_rows = next((each.num_rows for each in found.values()), 0)
    print_table(f"values of {counted(num_rows, 'row')}", ["column", "nulls>", "min", "max", "distinct>"], rows)


def _json_value(value: Any) -> str:
    """Return a value that JSON has no form for: bytes in base64, all others as their text."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _cell(value: pa.Scalar) -> str:
    return _text(value.as_py())


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"

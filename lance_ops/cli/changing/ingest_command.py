"""The command `ingest`, which appends raw files, each batch exactly once."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from lance_ops.api import json_to_schema
from lance_ops.cli.arguments import DryRun, Json, OnSpark, OptionsFile, StorageOptions, Uri, runner, storage_options
from lance_ops.cli.output import counted, number, print_json, print_line
from lance_ops.core.errors import LanceOpsError
from lance_ops.core.schema import SchemaMode, arrow_type_of
from lance_ops.maintenance.ingest import (
    ChangedBatches,
    ExtraColumns,
    HistoryColumns,
    IngestBatch,
    IngestMode,
    IngestOptions,
    MissingColumns,
    RawReading,
    TextReading,
    found_file,
    ingest,
    plan_ingest,
)
from lance_ops.writing import FragmentLimits

__all__ = ["ingest_files"]

_TEXT = TextReading()


def ingest_files(
    uri: Uri,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Parquet, ORC, Arrow, CSV or JSON lines; paths or URLs.")
    ],
    batch: Annotated[
        str | None, typer.Option(metavar="KEY", help="All files are one batch of this key; default: one each, by name.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Columns as JSON, such as {"id": "string", "day": "date32:day"}.'),
    ] = None,
    schema_mode: Annotated[
        SchemaMode, typer.Option(help="What to do with columns that the table lacks; add also widens types.")
    ] = SchemaMode.ERROR,
    missing_columns: Annotated[
        MissingColumns, typer.Option(help="What to do with a file that lacks a column.")
    ] = MissingColumns.FILL,
    extra_columns: Annotated[
        ExtraColumns, typer.Option(help="With --schema-mode error: refuse or ignore a column that the table lacks.")
    ] = ExtraColumns.REFUSE,
    case_sensitive: Annotated[bool, typer.Option("--case-sensitive", help="Match names by case, too.")] = False,
    batch_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A text column for the key of each row's batch.")
    ] = None,
    changed: Annotated[
        ChangedBatches, typer.Option(help="What to do with a batch that changed; replace needs --batch-column.")
    ] = ChangedBatches.REFUSE,
    mode: Annotated[
        IngestMode, typer.Option(help="Append rows, merge them by key, or keep the history of each key (scd2).")
    ] = IngestMode.APPEND,
    key: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column of the key of --mode; may be repeated.")
    ] = None,
    valid_from: Annotated[
        str, typer.Option(metavar="COLUMN", help="With --mode scd2, the column that says when a row begins.")
    ] = HistoryColumns.valid_from,
    delimiter: Annotated[str, typer.Option(help="The text between the cells of CSV.")] = _TEXT.delimiter,
    quote: Annotated[str, typer.Option(help="The text around cells of CSV; empty: none.")] = _TEXT.quote,
    escape: Annotated[
        str, typer.Option(help="The text before quotes in cells of CSV; by default quotes are doubled.")
    ] = "",
    header: Annotated[bool, typer.Option(help="Whether CSV begins with the names of its columns.")] = _TEXT.header,
    encoding: Annotated[str, typer.Option(help="The encoding of CSV and JSON.")] = _TEXT.encoding,
    null_value: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A cell of CSV that is null; may be repeated.")
    ] = None,
    empty_as_null: Annotated[
        bool, typer.Option("--empty-as-null", help="Read empty cells of text columns as null, too.")
    ] = False,
    date_format: Annotated[
        list[str] | None,
        typer.Option(metavar="FORMAT", help="A form of dates, such as %d.%m.%Y, besides ISO 8601; may be repeated."),
    ] = None,
    timestamp_format: Annotated[
        list[str] | None,
        typer.Option(metavar="FORMAT", help="A form of timestamps, besides ISO 8601; may be repeated."),
    ] = None,
    data_storage_version: Annotated[
        str, typer.Option(help="The file version of a new table.")
    ] = IngestOptions.data_storage_version,
    stable_row_ids: Annotated[
        bool, typer.Option("--stable-row-ids", help="Give the rows of a new table stable ids.")
    ] = False,
    max_rows_per_file: Annotated[
        int, typer.Option(min=1, help="A fragment has at most this many rows.")
    ] = FragmentLimits.max_rows_per_file,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    file_option: Annotated[
        list[str] | None,
        typer.Option(
            "--file-storage-option", metavar="KEY=VALUE", help="An option of fsspec for the raw files' store."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Append raw files, or merge them by key, as one version; a batch that the table holds already is left out."""
    text = TextReading(
        delimiter,
        quote,
        escape,
        header,
        encoding,
        None if null_value is None else tuple(null_value),
        empty_as_null,
        tuple(date_format or ()),
        tuple(timestamp_format or ()),
    )
    options = IngestOptions(
        schema=None if schema is None else _declared(schema),
        data_storage_version=data_storage_version,
        enable_stable_row_ids=stable_row_ids,
        limits=FragmentLimits(max_rows_per_file),
        reading=RawReading(text=text),
        schema_mode=schema_mode,
        missing_columns=missing_columns,
        extra_columns=extra_columns,
        case_sensitive=case_sensitive,
        batch_column=batch_column,
        changed_batches=changed,
        mode=mode,
        keys=tuple(key or ()),
        history=HistoryColumns(valid_from),
    )
    of_table, of_files = storage_options(storage_option, options_file), storage_options(file_option)
    found = [found_file(file, of_files or {}) for file in files]
    batches = (
        [IngestBatch(file.uri.rpartition("/")[2], (file,)) for file in found]
        if batch is None
        else [IngestBatch(batch, tuple(found))]
    )
    arguments: dict[str, Any] = {
        "storage_options": of_table,
        "raw_storage_options": of_files,
        "options": options,
        "runner": runner(spark),
    }
    if dry_run:
        plan = plan_ingest(uri, batches, **arguments)
        keys = [each.key for each in plan.batches]
        if as_json:
            print_json({"ingested": keys, "skipped": list(plan.skipped), "replaced": plan.replaced, "dry_run": True})
        else:
            print_line(f"{counted(len(keys), 'batch')} would be ingested: {', '.join(keys) or 'none'}")
        return
    result = ingest(uri, batches, **arguments)
    if as_json:
        print_json({**asdict(result), "dry_run": False})
    elif result.version is None:
        print_line("the table holds every batch already")
    else:
        replaced = f", in place of their rows of before: {', '.join(result.replaced)}" if result.replaced else ""
        merged = ""
        if result.merged is not None:
            merged = f", {number(result.merged.inserted)} inserted, {number(result.merged.updated)} updated"
        print_line(f"ingested {counted(result.num_rows, 'row')}{merged}: version {result.version}{replaced}")


def _declared(file: Path) -> pa.Schema:
    """Read a schema as `schema_to_json` writes it, or an object of names and logical types."""
    try:
        declared = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(declared, dict):
            raise typer.BadParameter(f"{file} does not hold a JSON object", param_hint="--schema")
        if isinstance(declared.get("fields"), list):
            return json_to_schema(declared)
        return pa.schema([(name, arrow_type_of(str(kind), (), name)) for name, kind in declared.items()])
    except (OSError, ValueError, LanceOpsError) as error:
        raise typer.BadParameter(f"{file}: {error}", param_hint="--schema") from error

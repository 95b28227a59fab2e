"""The command `ingest`, which appends raw files, each batch exactly once."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lance_ops import verbs
from lance_ops.cli.arguments import (
    DryRun,
    FileOptions,
    Json,
    OnSpark,
    OptionsFile,
    StorageOptions,
    Uri,
    help_of,
    open_target,
    options_to_work,
    runner,
    storage_options,
)
from lance_ops.cli.outcomes import preview_and_print, print_changed_sizes
from lance_ops.cli.output import counted, number, print_json, print_line
from lance_ops.core.errors import LanceOpsError
from lance_ops.core.schema import SchemaMode
from lance_ops.maintenance.ingest import (
    ChangedBatches,
    ExtraColumns,
    HistoryColumns,
    IngestMode,
    IngestOptions,
    MissingColumns,
    TextReading,
)
from lance_ops.writing import FragmentLimits

__all__ = ["ingest_files"]

_TEXT = TextReading()


def ingest_files(
    uri: Uri,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help=help_of(verbs.IngestFiles, "files"))],
    batch: Annotated[str | None, typer.Option(metavar="KEY", help=help_of(verbs.IngestFiles, "batch"))] = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Columns as JSON, such as {"id": "string", "day": "date32:day"}.'),
    ] = None,
    schema_mode: Annotated[SchemaMode, typer.Option(help=help_of(verbs.IngestFiles, "schema_mode"))] = SchemaMode.ERROR,
    missing_columns: Annotated[
        MissingColumns, typer.Option(help=help_of(verbs.IngestFiles, "missing_columns"))
    ] = MissingColumns.FILL,
    extra_columns: Annotated[
        ExtraColumns, typer.Option(help=help_of(verbs.IngestFiles, "extra_columns"))
    ] = ExtraColumns.REFUSE,
    case_sensitive: Annotated[
        bool, typer.Option("--case-sensitive", help=help_of(verbs.IngestFiles, "case_sensitive"))
    ] = False,
    batch_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help=help_of(verbs.IngestFiles, "batch_column"))
    ] = None,
    changed: Annotated[
        ChangedBatches, typer.Option(help=help_of(verbs.IngestFiles, "changed"))
    ] = ChangedBatches.REFUSE,
    mode: Annotated[IngestMode, typer.Option(help=help_of(verbs.IngestFiles, "mode"))] = IngestMode.APPEND,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", "--key", metavar="COLUMN", help="A column of the key of --mode; may be repeated."),
    ] = None,
    valid_from: Annotated[
        str, typer.Option(metavar="COLUMN", help=help_of(verbs.IngestFiles, "valid_from"))
    ] = HistoryColumns.valid_from,
    delimiter: Annotated[str, typer.Option(help=help_of(verbs.IngestFiles, "delimiter"))] = _TEXT.delimiter,
    quote: Annotated[str, typer.Option(help=help_of(verbs.IngestFiles, "quote"))] = _TEXT.quote,
    escape: Annotated[str, typer.Option(help=help_of(verbs.IngestFiles, "escape"))] = "",
    header: Annotated[bool, typer.Option(help=help_of(verbs.IngestFiles, "header"))] = _TEXT.header,
    encoding: Annotated[str, typer.Option(help=help_of(verbs.IngestFiles, "encoding"))] = _TEXT.encoding,
    null_value: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A cell of CSV that is null; may be repeated.")
    ] = None,
    empty_as_null: Annotated[
        bool, typer.Option("--empty-as-null", help=help_of(verbs.IngestFiles, "empty_as_null"))
    ] = False,
    date_format: Annotated[
        list[str] | None,
        typer.Option(metavar="FORMAT", help="A form of dates, such as %d.%m.%Y, besides ISO 8601; may be repeated."),
    ] = None,
    timestamp_format: Annotated[
        list[str] | None,
        typer.Option(metavar="FORMAT", help="A form of timestamps, besides ISO 8601; may be repeated."),
    ] = None,
    decimal_point: Annotated[str, typer.Option(help=help_of(verbs.IngestFiles, "decimal_point"))] = _TEXT.decimal_point,
    thousands: Annotated[str, typer.Option(help=help_of(verbs.IngestFiles, "thousands"))] = _TEXT.thousands,
    skip_lines: Annotated[int, typer.Option(min=0, help=help_of(verbs.IngestFiles, "skip_lines"))] = _TEXT.skip_lines,
    distinct_names: Annotated[
        bool, typer.Option("--distinct-names", help=help_of(verbs.IngestFiles, "distinct_names"))
    ] = _TEXT.distinct_names,
    data_storage_version: Annotated[
        str, typer.Option(help=help_of(verbs.IngestFiles, "data_storage_version"))
    ] = IngestOptions.data_storage_version,
    stable_row_ids: Annotated[
        bool, typer.Option("--stable-row-ids", help=help_of(verbs.IngestFiles, "stable_row_ids"))
    ] = False,
    max_rows_per_file: Annotated[
        int, typer.Option(min=1, help=help_of(verbs.IngestFiles, "max_rows_per_file"))
    ] = FragmentLimits.max_rows_per_file,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    file_option: FileOptions = None,
    as_json: Json = False,
) -> None:
    """Append raw files, or merge them by key, as one version; a batch that the table holds already is left out."""
    verb = verbs.IngestFiles(
        tuple(files),
        batch=batch,
        table_schema=None if schema is None else _text_of(schema),
        schema_mode=schema_mode.value,
        missing_columns=missing_columns.value,
        extra_columns=extra_columns.value,
        case_sensitive=case_sensitive,
        batch_column=batch_column,
        changed=changed.value,
        mode=mode.value,
        on=tuple(on or ()),
        valid_from=valid_from,
        delimiter=delimiter,
        quote=quote,
        escape=escape,
        header=header,
        encoding=encoding,
        null_values=None if null_value is None else tuple(null_value),
        empty_as_null=empty_as_null,
        date_formats=tuple(date_format or ()),
        timestamp_formats=tuple(timestamp_format or ()),
        decimal_point=decimal_point,
        thousands=thousands,
        skip_lines=skip_lines,
        distinct_names=distinct_names,
        data_storage_version=data_storage_version,
        stable_row_ids=stable_row_ids,
        max_rows_per_file=max_rows_per_file,
    )
    opened = open_target(verb, uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    of_files = storage_options(file_option)
    if dry_run:
        preview_and_print(verb, opened, runner(spark), as_json=as_json, raw_storage_options=of_files)
        return
    done = verbs.do_now(verb, opened, runner(spark), raw_storage_options=of_files)
    ingested: verbs.IngestedFiles = done.outcome
    result = ingested.result
    if as_json:
        print_json({**asdict(result), "dry_run": False, "before": done.before, "after": done.after})
    elif result.version is None:
        print_line("the table holds every batch already")
    else:
        replaced = f", in place of their rows of before: {', '.join(result.replaced)}" if result.replaced else ""
        merged = ""
        if result.merged is not None:
            merged = f", {number(result.merged.inserted)} inserted, {number(result.merged.updated)} updated"
        print_line(f"ingested {counted(result.num_rows, 'row')}{merged}: version {result.version}{replaced}")
        print_changed_sizes(done.before, done.after)


def _text_of(file: Path) -> str:
    """Return the text of a schema; raise unless it is one."""
    try:
        text = file.read_text(encoding="utf-8")
        verbs.declared_schema(text)
    except (OSError, ValueError, LanceOpsError) as error:
        raise typer.BadParameter(f"{file}: {error}", param_hint="--schema") from error
    return text

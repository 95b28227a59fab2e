"""The command `merge`: bring raw files or a dataset into a dataset by key, as one version."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_ops.cli.arguments import (
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

__all__ = ["merge"]


def merge(
    uri: Uri,
    source: Annotated[
        list[str], typer.Argument(metavar="SOURCE…", help="Raw files such as Parquet, or one dataset (.lance).")
    ],
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="COLUMN", help="A column of the key; may be repeated. Default: the primary key."),
    ] = None,
    update: Annotated[bool, typer.Option(help="Give rows that match the source's values.")] = True,
    condition: Annotated[
        str | None, typer.Option("--if", metavar="SQL", help="Update only where it is true: source.v > target.v.")
    ] = None,
    insert: Annotated[bool, typer.Option(help="Insert rows that match nothing.")] = True,
    delete_matched: Annotated[
        bool, typer.Option("--delete-matched", help="Delete rows that match, and insert none.")
    ] = False,
    delete_unmatched: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Delete rows that no source row matches and for which SQL is true."),
    ] = None,
    spark: OnSpark = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Update, insert and delete rows by key, as one version: tasks join the keys, and no row is held here."""
    opened = open_dataset(uri, storage_options(storage_option, options_file))
    before = opened.version
    builder = opened.merge_insert(on or None)
    if delete_matched:
        builder.when_matched_delete()
    elif update:
        builder.when_matched_update_all(condition)
    if insert and not delete_matched:
        builder.when_not_matched_insert_all()
    if delete_unmatched is not None:
        builder.when_not_matched_by_source_delete(delete_unmatched)
    result = builder.execute(source, runner=runner(spark))
    if as_json:
        print_json({**result, "version": opened.version})
    elif opened.version == before:
        print_line(f"no row changes; version {before} stays")
    else:
        inserted, updated, deleted = (counted(count, "row") for count in result.values() if isinstance(count, int))
        print_line(f"inserted {inserted}, updated {updated}, deleted {deleted}: version {opened.version}")

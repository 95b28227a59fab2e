"""The command `duplicates`: count rows whose key other rows have, or delete them."""

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
from lance_ops.cli.output import counted, number, print_json, print_line, print_table

__all__ = ["duplicates"]


def duplicates(
    uri: Uri,
    on: Annotated[list[str], typer.Option("--on", metavar="COLUMN", help="A column of the key; may be repeated.")],
    keep: Annotated[
        str | None, typer.Option(metavar="first|last", help="Keep this row of each key, and delete the others.")
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Print this many of the most frequent keys.")] = 10,
    spark: OnSpark = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Count the rows that share their key with others, or delete all but one of each key."""
    opened = open_dataset(uri, storage_options(storage_option, options_file))
    before = opened.version
    if keep is not None:
        num_rows = opened.delete_duplicates(on, keep, runner=runner(spark))["num_deleted_rows"]
        if as_json:
            print_json({"num_deleted_rows": num_rows, "version": opened.version})
        elif opened.version == before:
            print_line(f"no key has two rows; version {before} stays")
        else:
            print_line(f"deleted {counted(num_rows, 'row')}: version {opened.version}")
        return
    found = opened.duplicates(on, examples=examples, runner=runner(spark))
    if as_json:
        keys = [{"key": list(map(str, each.values)), "num_rows": each.num_rows} for each in found.examples]
        print_json({"num_keys": found.num_keys, "num_rows": found.num_rows, "examples": keys})
        return
    title = f"{counted(found.num_keys, 'key')} of {counted(found.num_rows, 'row')}"
    rows = [[*map(str, each.values), number(each.num_rows)] for each in found.examples]
    print_table(f"{title} repeat", [*on, "rows>"], rows)

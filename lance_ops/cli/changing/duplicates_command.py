"""The command `duplicates`: count rows whose key other rows have, or delete them."""

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
    open_dataset,
    options_to_work,
    runner,
)
from lance_ops.cli.outcomes import delete_and_print, preview_and_print
from lance_ops.cli.output import counted, number, print_json, print_table

__all__ = ["duplicates"]


def duplicates(
    uri: Uri,
    on: Annotated[list[str], typer.Option("--on", metavar="COLUMN", help="A column of the key; may be repeated.")],
    keep: Annotated[
        str | None, typer.Option(metavar="first|last", help="Keep this row of each key, and delete the others.")
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Print this many of the most frequent keys.")] = 10,
    reason: Reason = "",
    at_most_rows: AtMostRows = None,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Count the rows that share their key with others, or delete all but one of each key."""
    only_looks = dry_run or keep is None
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=only_looks))
    if keep is not None:
        given = {"on": tuple(on), "keep": keep, "reason": reason, "at_most_rows": at_most_rows}
        verb = verbs.make_verb("delete_duplicates", given)
        if dry_run:
            preview_and_print(verb, opened, runner(spark), as_json=as_json)
            return
        delete_and_print(verb, opened, runner(spark), as_json=as_json, nothing="no key has two rows")
        return
    only_with_keep = {"--dry-run": dry_run, "--reason": bool(reason), "--at-most-rows": at_most_rows is not None}
    without = next((option for option, is_given in only_with_keep.items() if is_given), None)
    if without is not None:
        raise typer.BadParameter("nothing is deleted without --keep", param_hint=without)
    found = opened.duplicates(on, examples=examples, runner=runner(spark))
    if as_json:
        keys = [{"key": list(map(str, each.values)), "num_rows": each.num_rows} for each in found.examples]
        print_json({"num_keys": found.num_keys, "num_rows": found.num_rows, "examples": keys})
        return
    title = f"{counted(found.num_keys, 'key')} of {counted(found.num_rows, 'row')}"
    rows = [[*map(str, each.values), number(each.num_rows)] for each in found.examples]
    print_table(f"{title} repeat", [*on, "rows>"], rows)

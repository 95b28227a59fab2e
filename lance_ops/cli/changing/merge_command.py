"""The command `merge`: bring raw files or a dataset into a dataset by key, as one version."""

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

__all__ = ["merge"]


def merge(
    uri: Uri,
    source: Annotated[list[str], typer.Argument(metavar="SOURCE…", help=help_of(verbs.Upsert, "files"))],
    on: Annotated[
        list[str] | None,
        typer.Option("--on", metavar="COLUMN", help=help_of(verbs.Upsert, "on")),
    ] = None,
    update: Annotated[bool, typer.Option(help="Give rows that match the source's values.")] = True,
    condition: Annotated[
        str | None, typer.Option("--if", metavar="SQL", help=help_of(verbs.Upsert, "condition"))
    ] = None,
    insert: Annotated[bool, typer.Option(help=help_of(verbs.Upsert, "insert"))] = True,
    delete_matched: Annotated[
        bool, typer.Option("--delete-matched", help="Delete rows that match, and insert none.")
    ] = False,
    delete_unmatched: Annotated[
        str | None,
        typer.Option(metavar="SQL", help=help_of(verbs.Upsert, "delete_unmatched")),
    ] = None,
    reason: Reason = "",
    at_most_rows: AtMostRows = None,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Update, insert and delete rows by key, as one version.

    Tasks join the keys, and no row is held here. With --spark, or for a source of more than 64 MiB, they also
    count for --dry-run and --at-most-rows. Otherwise this process does, and holds the source's distinct keys.
    """
    if condition is not None and (delete_matched or not update):
        raise typer.BadParameter("--if is for updates: leave out --no-update and --delete-matched", param_hint="--if")
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    verb = verbs.Upsert(
        tuple(source),
        tuple(on or ()),
        matched="delete" if delete_matched else "update" if update else "keep",
        condition=condition,
        insert=insert and not delete_matched,
        delete_unmatched=delete_unmatched,
        reason=reason,
        at_most_rows=at_most_rows,
    )
    if dry_run:
        preview_and_print(verb, opened, runner(spark), as_json=as_json)
        return
    done = verbs.do_now(verb, opened, runner(spark))
    inserted, updated, deleted = (
        counted(int(done.facts[f"num_{kind}_rows"]), "row") for kind in ("inserted", "updated", "deleted")
    )
    what = f"inserted {inserted}, updated {updated}, deleted {deleted}"
    print_outcome(done, done.facts, as_json=as_json, what=what, nothing="no row changes")

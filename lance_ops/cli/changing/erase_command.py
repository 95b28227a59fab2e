"""The command `erase`: a subject's rows leave every version, tag and branch, and a report proves it."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_ops import verbs
from lance_ops.cli.arguments import (
    DryRun,
    Json,
    OnSpark,
    OptionsFile,
    StorageOptions,
    Uri,
    Yes,
    help_of,
    open_dataset,
    options_to_work,
    runner,
)
from lance_ops.cli.outcomes import preview_and_print, print_changed_sizes, print_preview
from lance_ops.cli.output import print_facts, print_json, print_line
from lance_ops.cli.questions import check_can_ask, confirm_or_exit

__all__ = ["erase"]


def erase(
    uri: Uri,
    predicate: Annotated[str | None, typer.Argument(metavar="[PREDICATE]", help="SQL that matches the rows.")] = None,
    keys: Annotated[
        list[str] | None, typer.Option("--keys", metavar="FILE", help="Instead: a raw file or dataset of keys.")
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="COLUMN", help="The key's column in both; may be repeated.")
    ] = None,
    reason: Annotated[str, typer.Option(help=help_of(verbs.Erase, "reason"))] = "",
    remove_tags: Annotated[bool, typer.Option("--remove-tags", help=help_of(verbs.Erase, "remove_tags"))] = False,
    rewrite_branches: Annotated[
        bool, typer.Option("--rewrite-branches", help=help_of(verbs.Erase, "rewrite_branches"))
    ] = False,
    delete_unverified: Annotated[
        bool,
        typer.Option(
            "--delete-unverified",
            help=help_of(verbs.Erase, "delete_unverified"),
        ),
    ] = False,
    at_most_rows: Annotated[int | None, typer.Option(min=0, help=help_of(verbs.Erase, "at_most_rows"))] = None,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Erase rows from every retained version, tag and branch, and prove that no remaining file holds them.

    Nothing brings the rows back. So the command shows its preview and asks. It needs --yes without a terminal, and also
    with --json. After the question it is refused if more rows would go than the preview showed.
    """
    if not (dry_run or yes):
        check_can_ask(as_json=as_json)
    verb = verbs.Erase(
        predicate,
        reason,
        tuple(keys or ()),
        tuple(on or ()),
        remove_tags,
        rewrite_branches,
        delete_unverified,
        at_most_rows,
    )
    options = options_to_work(uri, storage_option, options_file, only_looks=dry_run)
    opened, used = open_dataset(uri, options), runner(spark)
    if dry_run:
        preview_and_print(verb, opened, used, as_json=as_json)
        return
    if yes:
        done = verbs.do_now(verb, opened, used)
    else:
        plan, preview = verbs.make_plan(verb, opened, used)
        print_preview(preview)
        confirm_or_exit("Erase these rows for good?")
        done = verbs.execute_plan(plan, open_dataset(uri, options), used)
    if as_json:
        sizes = {"before": done.before, "after": done.after}
        print_json({**done.facts, "version": done.version, "dry_run": False, **sizes})
        return
    print_line(f"proven: no remaining file beneath the root holds the rows; version {done.version}")
    print_facts({name.replace("_", " "): str(value) for name, value in done.facts.items()})
    print_changed_sizes(done.before, done.after)

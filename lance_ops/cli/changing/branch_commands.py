"""Commands that list, create and delete branches. Every other command takes a branch's URI as its dataset."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from lance_ops import verbs
from lance_ops.cli.arguments import (
    DryRun,
    Json,
    OptionsFile,
    StorageOptions,
    Uri,
    Yes,
    open_dataset,
    options_to_look,
    options_to_work,
    reference,
    runner,
)
from lance_ops.cli.examples import shown_example
from lance_ops.cli.outcomes import preview_and_print, print_preview
from lance_ops.cli.output import moment, print_json, print_line, print_table
from lance_ops.cli.questions import check_can_ask, confirm_or_exit
from lance_ops.refs import branch_uri

__all__ = ["branches_app"]

branches_app = typer.Typer(help="Begin lines of versions beside the main one.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The branch's name.")]
Version = Annotated[
    str | None, typer.Argument(metavar="[VERSION|TAG]", help="What it begins with; default: the newest version.")
]


@branches_app.command("list", epilog=shown_example("branches list"))
def list_branches(
    uri: Uri, storage_option: StorageOptions = None, options_file: OptionsFile = None, as_json: Json = False
) -> None:
    """List the branches, and the URIs by which other commands know them."""
    opened = open_dataset(uri, options_to_look(uri, storage_option, options_file))
    branches = opened.branches.list()
    places = {name: branch_uri(opened.snapshot, name) for name in branches}
    if as_json:
        print_json({name: {**branch, "uri": places[name]} for name, branch in branches.items()})
    elif not branches:
        print_line("no branches")
    else:
        print_table(
            f"branches of {uri}",
            ["name", "of", "since version>", "created (UTC)", "uri"],
            [
                [
                    name,
                    branch["parent_branch"] or "main",
                    str(branch["parent_version"]),
                    moment(datetime.fromtimestamp(branch["create_at"], UTC)),
                    places[name],
                ]
                for name, branch in branches.items()
            ],
        )


@branches_app.command("create", epilog=shown_example("branches create"))
def create_branch(
    uri: Uri,
    name: Name,
    version: Version = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Begin a branch; it shares the files of the version that it begins with."""
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    chosen = reference(version)
    if dry_run:
        verb = verbs.Branch(name, tag=chosen) if isinstance(chosen, str) else verbs.Branch(name, chosen)
        preview_and_print(verb, opened, runner(None), as_json=as_json)
        return
    branch = opened.create_branch(name, chosen)
    if as_json:
        print_json({"branch": name, "version": branch.version, "uri": branch.uri})
    else:
        print_line(f"branch {name} begins with version {branch.version}: {branch.uri}")


@branches_app.command("delete", epilog=shown_example("branches delete"))
def delete_branch(
    uri: Uri,
    name: Name,
    dry_run: DryRun = False,
    yes: Yes = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Remove a branch with its own files; one that others came from, or that is tagged, is refused.

    Nothing brings its rows back. So the command shows its preview and asks. It needs --yes without a terminal, and also
    with --json.
    """
    if not (dry_run or yes):
        check_can_ask(as_json=as_json)
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    verb = verbs.Branch(name, action="delete")
    if dry_run:
        preview_and_print(verb, opened, runner(None), as_json=as_json)
        return
    if not yes:
        print_preview(verbs.make_plan(verb, opened, runner(None))[1])
        confirm_or_exit(f"Remove branch {name} for good?")
    opened.branches.delete(name)
    if as_json:
        print_json({"branch": name, "deleted": True})
    else:
        print_line(f"branch {name} removed")

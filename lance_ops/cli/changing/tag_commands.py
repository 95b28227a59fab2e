"""Commands that list, create, move and delete tags; clean-up keeps tagged versions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import typer

from lance_ops import verbs
from lance_ops.api import LanceDataset, Tag
from lance_ops.cli.arguments import (
    DryRun,
    Json,
    OptionsFile,
    StorageOptions,
    Uri,
    open_dataset,
    options_to_look,
    options_to_work,
    reference,
    runner,
)
from lance_ops.cli.examples import shown_example
from lance_ops.cli.outcomes import preview_and_print
from lance_ops.cli.output import moment, print_json, print_line, print_table

__all__ = ["tags_app"]

tags_app = typer.Typer(help="Name versions: clean-up keeps what has a name.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The tag's name.")]
Version = Annotated[
    str | None, typer.Argument(metavar="[VERSION|TAG]", help="What to name; default: the newest version.")
]


@tags_app.command("list", epilog=shown_example("tags list"))
def list_tags(
    uri: Uri, storage_option: StorageOptions = None, options_file: OptionsFile = None, as_json: Json = False
) -> None:
    """List the tags."""
    tags = open_dataset(uri, options_to_look(uri, storage_option, options_file)).tags.list()
    if as_json:
        print_json(tags)
    elif not tags:
        print_line("no tags")
    else:
        print_table(
            f"tags of {uri}",
            ["name", "version>", "created (UTC)"],
            [[name, str(tag["version"]), _created(tag)] for name, tag in tags.items()],
        )


@tags_app.command("create", epilog=shown_example("tags create"))
def create_tag(
    uri: Uri,
    name: Name,
    version: Version = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Name a version."""
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    if dry_run:
        _preview(opened, "create", name, version, as_json)
        return
    tags = opened.tags
    tags.create(name, reference(version))
    _report(name, tags.get_version(name), as_json)


@tags_app.command("update", epilog=shown_example("tags update"))
def update_tag(
    uri: Uri,
    name: Name,
    version: Version = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Move a tag to another version."""
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    if dry_run:
        _preview(opened, "move", name, version, as_json)
        return
    tags = opened.tags
    tags.update(name, reference(version))
    _report(name, tags.get_version(name), as_json)


@tags_app.command("delete", epilog=shown_example("tags delete"))
def delete_tag(
    uri: Uri,
    name: Name,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Remove a tag; its version may then be cleaned up."""
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    if dry_run:
        _preview(opened, "delete", name, None, as_json)
        return
    opened.tags.delete(name)
    if as_json:
        print_json({"tag": name, "deleted": True})
    else:
        print_line(f"tag {name} removed")


def _preview(
    opened: LanceDataset, action: Literal["create", "move", "delete"], name: str, version: str | None, as_json: bool
) -> None:
    chosen = reference(version)
    number = opened.tags.get_version(chosen) if isinstance(chosen, str) else chosen
    preview_and_print(verbs.Tag(name, number, action), opened, runner(None), as_json=as_json)


def _report(name: str, version: int, as_json: bool) -> None:
    if as_json:
        print_json({"tag": name, "version": version})
    else:
        print_line(f"tag {name} names version {version}")


def _created(tag: Tag) -> str:
    created = tag["created_at"]
    return moment(created if isinstance(created, datetime) else None)

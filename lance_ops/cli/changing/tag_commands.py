"""Commands that list, create, move and delete tags; clean-up keeps tagged versions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from lance_ops.api import Tag
from lance_ops.cli.arguments import Json, OptionsFile, StorageOptions, Uri, open_dataset, reference, storage_options
from lance_ops.cli.examples import shown_example
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
    tags = open_dataset(uri, storage_options(storage_option, options_file)).tags.list()
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
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Name a version."""
    tags = open_dataset(uri, storage_options(storage_option, options_file)).tags
    tags.create(name, reference(version))
    _report(name, tags.get_version(name), as_json)


@tags_app.command("update", epilog=shown_example("tags update"))
def update_tag(
    uri: Uri,
    name: Name,
    version: Version = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Move a tag to another version."""
    tags = open_dataset(uri, storage_options(storage_option, options_file)).tags
    tags.update(name, reference(version))
    _report(name, tags.get_version(name), as_json)


@tags_app.command("delete", epilog=shown_example("tags delete"))
def delete_tag(
    uri: Uri, name: Name, storage_option: StorageOptions = None, options_file: OptionsFile = None, as_json: Json = False
) -> None:
    """Remove a tag; its version may then be cleaned up."""
    open_dataset(uri, storage_options(storage_option, options_file)).tags.delete(name)
    if as_json:
        print_json({"tag": name, "deleted": True})
    else:
        print_line(f"tag {name} removed")


def _report(name: str, version: int, as_json: bool) -> None:
    if as_json:
        print_json({"tag": name, "version": version})
    else:
        print_line(f"tag {name} names version {version}")


def _created(tag: Tag) -> str:
    created = tag["created_at"]
    return moment(created if isinstance(created, datetime) else None)

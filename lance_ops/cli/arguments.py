"""Declare and parse the arguments and options that commands share."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from lance_ops.api import LanceDataset, dataset
from lance_ops.core.durations import parse_duration
from lance_ops.core.errors import InvalidInput

__all__ = [
    "DryRun",
    "Json",
    "Reference",
    "StorageOptions",
    "Uri",
    "duration",
    "open_dataset",
    "reference",
    "storage_options",
]

Uri = Annotated[str, typer.Argument(metavar="URI", help="The dataset: a path, or the URL of an object store.")]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option("--storage-option", metavar="KEY=VALUE", help="An option for the object store; may be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Reference = Annotated[
    str | None, typer.Option("--version", metavar="VERSION|TAG", help="A version's number or a tag; default: newest.")
]


def open_dataset(uri: str, storage_option: list[str] | None, version: str | None = None) -> LanceDataset:
    """Open the dataset that a command line names."""
    return dataset(uri, reference(version), storage_options=storage_options(storage_option))


def storage_options(pairs: list[str] | None) -> dict[str, str] | None:
    """Parse `KEY=VALUE` storage options; return None if there are none."""
    options = {}
    for pair in pairs or ():
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise typer.BadParameter(f"{key!r} has no value: write KEY=VALUE", param_hint="--storage-option")
        options[key] = value
    return options or None


def reference(text: str | None) -> int | str | None:
    """Parse a version's number or a tag's name."""
    return int(text) if text is not None and text.isdecimal() else text


def duration(text: str) -> timedelta:
    """Parse a duration such as `90m`, `36h`, `14d`."""
    try:
        return parse_duration(text)
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error

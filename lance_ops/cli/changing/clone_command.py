"""The command `clone`, which copies a version into a new dataset."""

from __future__ import annotations

from pathlib import Path
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
    open_dataset,
    options_to_work,
    runner,
    storage_options,
)
from lance_ops.cli.outcomes import preview_and_print
from lance_ops.cli.output import counted, print_json, print_line

__all__ = ["clone"]


def clone(
    uri: Uri,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Where the copy begins; no dataset may be there.")],
    version: Annotated[
        str | None, typer.Argument(metavar="[VERSION|TAG]", help="What to copy; default: the newest version.")
    ] = None,
    shallow: Annotated[
        bool,
        typer.Option(
            "--shallow",
            help="Read the source's files where they are. "
            "Tag the source version yourself, or clean-up may remove the files.",
        ),
    ] = False,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    target_storage_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An option for the target's store; default: the source's."),
    ] = None,
    target_options_file: Annotated[
        Path | None,
        typer.Option(
            "--target-storage-options-file",
            metavar="FILE",
            help="Options for the target's store as a JSON object; - is stdin.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Copy a version, with its files or (--shallow) without them, into a dataset of its own."""
    source = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run), version)
    if dry_run and (target_storage_option or target_options_file):
        raise typer.BadParameter(
            "--dry-run opens the target with the source's storage options: leave out those of the target",
            param_hint="--dry-run",
        )
    if dry_run:
        preview_and_print(verbs.Clone(target, shallow=shallow), source, runner(None), as_json=as_json)
        return
    options = storage_options(target_storage_option, target_options_file)
    if shallow:
        made = source.shallow_clone(target, source.version, options)
    else:
        made = source.deep_clone(target, source.version, options, runner=runner(spark) if spark else None)
    if as_json:
        print_json({"uri": made.uri, "version": made.version, "shallow": shallow, "dry_run": False})
    else:
        what = "names the files of" if shallow else "holds a copy of"
        print_line(f"{made.uri} {what} version {made.version}: {counted(made.count_rows(), 'row')}")

"""The commands `init`, which writes a Dagster project of datasets, and `schema`, which describes a `defs.yaml`."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lance_ops.cli import extras
from lance_ops.cli.arguments import Json, OptionsFile, StorageOptions, storage_options
from lance_ops.cli.output import counted, print_json, print_line

__all__ = ["init", "schema"]


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The new project's folder.")],
    landing: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Look at these raw files, and declare a dataset for each kind of them."),
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Where tables are; those that exist are declared. Default: lake/ in FOLDER."
        ),
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Write what is missing into a folder that is not empty; no file is changed.")
    ] = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    landing_option: Annotated[
        list[str] | None,
        typer.Option(
            "--landing-storage-option", metavar="KEY=VALUE", help="An option of fsspec for the landing folder's store."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a Dagster project that ingests a landing folder and maintains tables; needs the extra `dagster`."""
    started = extras.start_project(
        folder,
        landing=landing,
        tables=tables,
        add=add,
        table_options=storage_options(storage_option, options_file),
        landing_options=storage_options(landing_option),
    )
    if as_json:
        print_json(asdict(started))
        return
    for path in started.written:
        print_line(f"wrote {path}")
    for path in started.kept:
        print_line(f"kept {path}, which was there")
    for note in started.notes:
        print_line(f"note: {note}", style="yellow")
    print_line(f"{counted(len(started.datasets), 'dataset')} declared: {', '.join(started.datasets) or 'none'}")
    print_line(f"next: cd {shlex.quote(os.path.relpath(started.home))} && dg dev")


def schema() -> None:
    """Print the JSON schema of a defs.yaml, of a dataset or a fleet, for editors; needs the extra `dagster`."""
    print_json(extras.defs_schema())

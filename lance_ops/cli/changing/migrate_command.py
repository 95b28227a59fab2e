"""The command `migrate`: bring all data files to one file version."""

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
from lance_ops.cli.output import counted, print_json, print_line

__all__ = ["migrate"]


def migrate(
    uri: Uri,
    data_storage_version: Annotated[
        str, typer.Option(metavar="VERSION", help="The file version, such as 2.1, that all files and new ones get.")
    ],
    spark: OnSpark = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Rewrite the files of other file versions, by tasks and as one version."""
    opened = open_dataset(uri, storage_options(storage_option, options_file))
    before = opened.version
    metrics = opened.optimize.migrate_files(data_storage_version, runner=runner(spark))
    if as_json:
        rewritten = metrics.fragments_removed
        print_json(
            {"fragments": rewritten, "version": opened.version, "data_storage_version": opened.data_storage_version}
        )
    elif opened.version == before:
        print_line(f"every file has version {opened.data_storage_version}; version {before} stays")
    else:
        count = counted(metrics.fragments_removed, "fragment")
        print_line(f"rewrote {count} in files of version {opened.data_storage_version}: version {opened.version}")

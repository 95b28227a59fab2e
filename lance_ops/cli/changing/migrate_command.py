"""The command `migrate`: bring all data files to one file version."""

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
    help_of,
    open_dataset,
    options_to_work,
    runner,
)
from lance_ops.cli.outcomes import preview_and_print, print_outcome
from lance_ops.cli.output import counted

__all__ = ["migrate"]


def migrate(
    uri: Uri,
    data_storage_version: Annotated[
        str, typer.Option(metavar="VERSION", help=help_of(verbs.Migrate, "data_storage_version"))
    ],
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Rewrite the files of other file versions, by tasks and as one version."""
    opened = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run))
    verb = verbs.Migrate(data_storage_version)
    if dry_run:
        preview_and_print(verb, opened, runner(None), as_json=as_json)
        return
    done = verbs.do_now(verb, opened, runner(spark))
    num_fragments = int(done.facts["fragments_removed"])
    file_version = opened.checkout_version(done.version).data_storage_version
    print_outcome(
        done,
        {"fragments": num_fragments, "data_storage_version": file_version},
        as_json=as_json,
        what=f"rewrote {counted(num_fragments, 'fragment')} in files of version {file_version}",
        nothing=f"every file has version {file_version}",
    )

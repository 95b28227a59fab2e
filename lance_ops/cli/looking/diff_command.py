"""The command `diff`: what one version of a dataset has that another has not."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_ops.cli.arguments import Json, OptionsFile, StorageOptions, Uri, open_dataset, options_to_look
from lance_ops.cli.output import moment, number, percent, print_facts, print_json, print_line, print_table, size
from lance_ops.maintenance.health import VersionDifference, compare_versions

__all__ = ["diff"]

_SHOWN_IDS = 10


def diff(
    uri: Uri,
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A version's number or a tag.")],
    after: Annotated[
        str | None, typer.Argument(metavar="AFTER", help="Another version or tag; by default the newest version.")
    ] = None,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Compare two versions: columns, rows, fragments, indices, and what was committed between them."""
    options = options_to_look(uri, storage_option, options_file)
    found = compare_versions(open_dataset(uri, options, before).snapshot, open_dataset(uri, options, after).snapshot)
    if as_json:
        print_json(found)
    else:
        _print(uri, found)


def _print(uri: str, found: VersionDifference) -> None:
    print_facts(
        {
            "dataset": f"{uri}, version {found.before} to {found.after}",
            "rows": f"{number(found.rows_before)} to {number(found.rows_after)} "
            f"({found.rows_after - found.rows_before:+,})",
            "size": f"{size(found.size_before)} to {size(found.size_after)}",
            "fragments added": _ids(found.fragments_added),
            "fragments removed": _ids(found.fragments_removed),
            "fragments changed": _ids(found.fragments_changed),
        }
    )
    if found.columns:
        print_table(
            "columns",
            ["path", "", "before", "after"],
            [[each.path, each.change.value, each.before or "", each.after or ""] for each in found.columns],
        )
    if found.indices:
        print_table(
            "indices",
            ["name", "", "covered before>", "after>"],
            [[each.name, each.change.value, percent(each.before), percent(each.after)] for each in found.indices],
        )
    if not found.versions:
        print_line("no version that is retained lies between them")
        return
    print_table(
        "committed",
        ["version>", "at (UTC)", "operation", "rows>", "fragments>"],
        [
            [
                str(past.version),
                moment(past.timestamp),
                past.operation,
                number(past.num_rows),
                number(past.num_fragments),
            ]
            for past in found.versions
        ],
    )


def _ids(fragments: tuple[int, ...]) -> str:
    if not fragments:
        return "none"
    shown = ", ".join(map(str, fragments[:_SHOWN_IDS]))
    return f"{number(len(fragments))} ({shown}{', …' if len(fragments) > _SHOWN_IDS else ''})"

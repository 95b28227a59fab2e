"""The command `doctor`: what would stop this machine, a store or a Dagster instance from doing its work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated

import typer

from lance_ops.cli import doctor as examining
from lance_ops.cli.arguments import Json, OptionsFile, StorageOptions, storage_options
from lance_ops.cli.doctor import Diagnosis, Verdict
from lance_ops.cli.output import print_json, print_line, print_table

__all__ = ["doctor"]


def doctor(
    uri: Annotated[
        str | None,
        typer.Argument(metavar="URI", help="A dataset, or where one shall be; also examines its store, by writing."),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Write nothing, and examine of a store only what readers need.")
    ] = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Examine packages, Java, the Dagster instance, and with URI a store; exit with code 1 if something fails."""
    findings = list(_examine(uri, storage_options(storage_option, options_file), read_only=read_only))
    if as_json:
        print_json(findings)
    else:
        _print(findings)
    if any(finding.verdict is Verdict.FAIL for finding in findings):
        raise typer.Exit(1)


def _examine(uri: str | None, options: Mapping[str, str] | None, *, read_only: bool) -> Iterator[Diagnosis]:
    yield from examining.examine_machine()
    if find_spec("pyspark") is not None:
        yield from examining.examine_spark()
    if find_spec("dagster") is not None:
        yield from examining.examine_dagster()
    if uri is not None:
        yield from examining.examine_store(uri, options, read_only=read_only)


def _print(findings: list[Diagnosis]) -> None:
    print_table(
        "examined",
        ["", "subject", "found"],
        [[finding.verdict.value, finding.subject, finding.what] for finding in findings],
    )
    for finding in findings:
        if finding.remedy and finding.verdict is not Verdict.ABSENT:
            style = "red" if finding.verdict is Verdict.FAIL else "yellow"
            print_line(f"{finding.subject}: {finding.remedy}", style)
    if all(finding.verdict in (Verdict.OK, Verdict.ABSENT) for finding in findings):
        print_line("nothing stands in the way", "green")

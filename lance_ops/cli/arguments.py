"""Declare and parse the arguments and options that commands share."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Annotated, get_origin

import typer

from lance_ops.api import LanceDataset, dataset
from lance_ops.cli import extras
from lance_ops.cli.progress_bar import progress_bar
from lance_ops.committers import with_prefixes
from lance_ops.core.errors import CorruptFile, DatasetNotFound, InvalidInput
from lance_ops.core.redaction import shown_key
from lance_ops.maintenance import repair
from lance_ops.maintenance.cleanup import parse_duration
from lance_ops.runners import InThreads, Runner
from lance_ops.store import with_short_timeouts
from lance_ops.verbs import AbsentTable, Target, Verb, options_of

__all__ = [
    "AllowedBases",
    "AtMostRows",
    "DryRun",
    "FileOptions",
    "Json",
    "OnSpark",
    "OptionsFile",
    "Reason",
    "Reference",
    "StorageOptions",
    "Uri",
    "Yes",
    "allow_bases",
    "byte_count",
    "duration",
    "help_of",
    "open_dataset",
    "open_readable",
    "open_target",
    "options_to_look",
    "options_to_work",
    "reference",
    "runner",
    "storage_options",
]

_OPTION = "--storage-option"
_FILE_OPTION = "--storage-options-file"
_ENVIRONMENT = "@env:"
_FILE = "@file:"
_STDIN = Path("-")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

Uri = Annotated[str, typer.Argument(metavar="URI", help="The dataset: a path, or the URL of an object store.")]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="An option for the object store; may be repeated. KEY=@env:NAME takes the value from the environment, "
        "KEY=@file:PATH from a file: other users of this machine see a command line.",
    ),
]
OptionsFile = Annotated[
    Path | None,
    typer.Option(
        "--storage-options-file",
        metavar="FILE",
        envvar="LANCE_OPS_STORAGE_OPTIONS_FILE",
        help="Options for the object store as a JSON object; - is stdin. A --storage-option wins.",
    ),
]
AllowedBases = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-base",
        metavar="PREFIX",
        help="Follow base paths of manifests beneath this URL, in another bucket than the dataset's; may be repeated.",
    ),
]
_allowed_bases: ContextVar[tuple[str, ...]] = ContextVar("allowed_bases", default=())
"""The value of `--allow-base`, which stands before the command's name."""

FileOptions = Annotated[
    list[str] | None,
    typer.Option("--file-storage-option", metavar="KEY=VALUE", help="An option of fsspec for the raw files' store."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without a question, as a script must.")]
Reason = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="Why the table is changed; the version's transaction states it."),
]
AtMostRows = Annotated[
    int | None, typer.Option("--at-most-rows", min=0, metavar="NUMBER", help="Refuse when more rows match.")
]
Reference = Annotated[
    str | None, typer.Option("--version", metavar="VERSION|TAG", help="A version's number or a tag; default: newest.")
]
OnSpark = Annotated[
    str | None,
    typer.Option(
        "--spark",
        metavar="MASTER",
        help="Run tasks on Spark, such as local[*], yarn or sc://host:15002; default: threads.",
    ),
]


def help_of(verb: type[Verb], option: str) -> str:
    """Return what an option of a verb means: the help of a command says it as launchpad and `lance-ops verbs` do."""
    declared = options_of(verb)[option]
    repeated = any(get_origin(kind) is tuple for kind in declared.kinds)
    return f"{declared.described.description}{' May be repeated.' if repeated else ''}"


def open_dataset(uri: str, options: Mapping[str, str] | None, version: str | None = None) -> LanceDataset:
    """Open the dataset that a command line names."""
    return dataset(uri, reference(version), storage_options=None if options is None else dict(options))


def open_readable(uri: str, options: Mapping[str, str] | None) -> LanceDataset:
    """Open the newest version, or the newest one that can be read if the newest manifest is damaged."""
    try:
        return open_dataset(uri, options)
    except CorruptFile:
        return LanceDataset.of(repair.open_newest_readable(uri, options))


def open_target(verb: Verb, uri: str, options: Mapping[str, str] | None) -> Target:
    """Open what a verb is planned on: the newest version, and whatever the verb can work on where there is none."""
    if not verb.creates_table:
        return (open_readable if verb.opens_damaged else open_dataset)(uri, options)
    try:
        return open_dataset(uri, options)
    except DatasetNotFound:
        return AbsentTable.at(uri, options)


def storage_options(pairs: list[str] | None, file: Path | None = None) -> dict[str, str] | None:
    """Read the storage options of a file and then `KEY=VALUE` pairs; return None if there are none.

    `--allow-base` of the command line is added to the option `allowed_bases`.

    A value of the form `@env:NAME` or `@file:PATH` stands for what is there. No error shows a value, or a pair without
    a key, which may be a value.
    """
    options = {} if file is None else _options_of_file(file)
    for pair in pairs or ():
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise typer.BadParameter("an option has no key or no value: write KEY=VALUE", param_hint=_OPTION)
        options[key] = _value(key, value)
    return with_prefixes(options, _allowed_bases.get()) or None


def options_to_look(uri: str, pairs: list[str] | None, file: Path | None = None) -> dict[str, str] | None:
    """Return the storage options of a command that only looks: it gives a silent store up within a minute.

    An option of the command line that says how long to wait wins.
    """
    return with_short_timeouts(uri, storage_options(pairs, file)) or None


def options_to_work(
    uri: str, pairs: list[str] | None, file: Path | None = None, *, only_looks: bool
) -> dict[str, str] | None:
    """Return the storage options. A call that only looks gets short timeouts."""
    return options_to_look(uri, pairs, file) if only_looks else storage_options(pairs, file)


def allow_bases(prefixes: list[str] | None) -> None:
    """Let every dataset that this command opens have base paths beneath these prefixes too, and no others."""
    _allowed_bases.set(tuple(prefixes or ()))


def runner(spark: str | None, threads: int | None = None) -> Runner:
    """Return what runs tasks, on a Spark master if the command line names one, and shows a bar on a terminal."""
    shown = progress_bar()
    return InThreads(threads, shown) if spark is None else extras.start_spark(spark, shown)


def reference(text: str | None) -> int | str | None:
    """Parse a version's number or a tag's name."""
    return int(text) if text is not None and text.isdecimal() else text


def duration(text: str) -> timedelta:
    """Parse a duration such as `90m`, `36h`, `14d`."""
    try:
        return parse_duration(text)
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from error


def byte_count(text: str) -> int:
    """Parse a size such as `500MB` or `2GiB`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is no size: write a number and a unit, such as 500MB or 2GiB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2].lower()])


def _options_of_file(file: Path) -> dict[str, str]:
    """Read a JSON object of options. No error shows its content, and none is linked to one that does."""
    where = "stdin" if file == _STDIN else str(file)
    found: object = None
    with suppress(ValueError):  # the decoder's error holds the whole text
        found = json.loads(_text_of(file))
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{where} does not hold a JSON object of options", param_hint=_FILE_OPTION)
    for value in found.values():
        if not isinstance(value, str | int | float):
            raise typer.BadParameter(f"{where}: every option is a text, a number or a switch", param_hint=_FILE_OPTION)
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}


def _value(key: str, value: str) -> str:
    if value.startswith(_ENVIRONMENT):
        name = value.removeprefix(_ENVIRONMENT)
        if name not in os.environ:
            raise typer.BadParameter(f"{shown_key(key)}: no such environment variable is set", param_hint=_OPTION)
        return os.environ[name]
    if value.startswith(_FILE):
        return _text_of(Path(value.removeprefix(_FILE))).rstrip("\r\n")
    return value


def _text_of(file: Path) -> str:
    try:
        return sys.stdin.read() if file == _STDIN else file.read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint=_FILE_OPTION) from None
    except UnicodeDecodeError:
        pass  # the error holds the bytes, so the next one must not be linked to it
    raise typer.BadParameter(f"{file} is not text in UTF-8", param_hint=_FILE_OPTION)

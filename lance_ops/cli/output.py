"""Print a command's result: as JSON for programs, or as tables and sentences for people.

Names and messages come from the table, whose writer is not trusted. A terminal obeys control characters: they can hide
text, show other text, or answer for the user. So people see them as escapes; JSON has escapes of its own.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

__all__ = [
    "counted",
    "escaped",
    "json_text",
    "moment",
    "number",
    "percent",
    "print_facts",
    "print_json",
    "print_line",
    "print_table",
    "size",
    "watch",
]

_Found = TypeVar("_Found")
_WIDTH_OF_PIPES = 200  # a pipe has no width, so use one that no table of these commands reaches


def print_json(value: Any) -> None:
    """Print dataclasses, mappings and lists of them as JSON."""
    typer.echo(json_text(_plain(value), indent=2))


def json_text(value: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """Return JSON that every parser takes: NaN and the infinities, which JSON lacks, become texts."""
    try:
        return json.dumps(value, indent=indent, default=default, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), indent=indent, default=default, allow_nan=False)


def _finite(value: Any) -> Any:
    """Return a value with the texts `NaN`, `Infinity` and `-Infinity` in place of these numbers."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value


def print_line(text: str, style: str = "") -> None:
    """Print one sentence."""
    _console().print(Text(escaped(text), style=style), soft_wrap=True)


def print_facts(facts: Mapping[str, str]) -> None:
    """Print names and values, one pair a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(escaped(name)), Text(escaped(value)))
    _console().print(table)


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a titled table; columns whose name ends in `>` are aligned to the right."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in columns:
        right = column.endswith(">")
        table.add_column(column.removesuffix(">"), justify="right" if right else "left", no_wrap=right)
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    console = _console()
    console.print(Text(escaped(title), style="bold"), soft_wrap=True)
    console.print(table)


def escaped(text: str) -> str:
    """Return the text with an escape, as in a string of Python, for each character that cannot be seen."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def watch(
    measure: Callable[[], _Found],
    show: Callable[[_Found], None],
    every: timedelta,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Measure and show again and again until the user interrupts. A pipe gets one result, because it has no screen.

    Rounds are at least a second apart.
    """
    seconds = max(every.total_seconds(), 1.0)
    with suppress(KeyboardInterrupt):
        while True:
            found = measure()
            if not sys.stdout.isatty():
                show(found)
                return
            _console().clear()
            show(found)
            pause(seconds)


def number(value: int) -> str:
    """Write a count with separators."""
    return f"{value:,}"


def counted(value: int, thing: str) -> str:
    """Write a count of things: `1 row`, `2 rows`."""
    return f"{number(value)} {thing}" if value == 1 else f"{number(value)} {thing}s"


def percent(ratio: float | None) -> str:
    """Return a ratio as a percentage; only a ratio of 1 gives 100%."""
    if ratio is None:
        return "-"
    return "100%" if ratio == 1 else f"{min(ratio * 100, 99.9):.1f}%"


def size(size_bytes: int) -> str:
    """Write a size in the unit that fits."""
    return decimal(size_bytes)


def moment(when: datetime | None) -> str:
    """Write a moment to the second, in UTC."""
    return "-" if when is None else when.strftime("%Y-%m-%d %H:%M:%S")


def _console() -> Console:
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH_OF_PIPES)


def _plain(value: Any) -> Any:
    match value:
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value

"""Find the part of a JSONB document at a path, without decoding the rest.

A path is an optional `$` and steps: `.name`, `."any name"` and `["any name"]` lead to a member of an object, `[n]` to
an item of an array, counted from 0. Wildcards, ranges and filters are not supported.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.json.jsonb import ARRAY, CONTAINER, NULL, OBJECT, SCALAR, Span, read_container

__all__ = ["Path", "find", "items", "parse_path", "step_into", "whole"]

Path: TypeAlias = tuple[str | int, ...]
"""The steps of a path: names of object members and positions of array items."""

_STEP = re.compile(
    r"""\s*(?: \.\s*(?P<name>[^\s.\[\]"'*?@$()]+) | \.?\s*"(?P<quoted>[^"\\]*)" | \[\s*"(?P<key>[^"\\]*)"\s*\]"""
    r""" | \[\s*(?P<index>-?\d{1,10})\s*\] )""",
    re.VERBOSE,
)


def parse_path(text: str) -> Path:
    """Return a path's steps; raise `UnsupportedFeature` for any other text."""
    rest = text.strip()
    if rest.startswith("$"):
        rest = rest[1:]
    elif rest and rest[0] not in "[.":
        rest = f".{rest}"
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            raise UnsupportedFeature(f"JSON path {text!r}")
        index = step["index"]
        steps.append(
            int(index) if index else next(name for name in step.group("name", "quoted", "key") if name is not None)
        )
        at = step.end()
    return tuple(steps)


def whole(data: bytes) -> Span:
    """Return the whole document as a part; an empty document is null."""
    if not data:
        return NULL, 0, 0
    kind, parts = read_container(data, 0, len(data))
    return parts[0] if kind == SCALAR else (CONTAINER, 0, len(data))


def find(data: bytes, path: Path) -> Span | None:
    """Return the part at a path; None if there is none."""
    part = whole(data)
    for step in path:
        below = step_into(data, part, step)
        if below is None:
            return None
        part = below
    return part


def step_into(data: bytes, part: Span, step: str | int) -> Span | None:
    """Return an object's member by name or an array's item by position; None if the part has no such member or item."""
    entry, start, stop = part
    if entry != CONTAINER:
        return None
    kind, parts = read_container(data, start, stop)
    if kind == ARRAY and isinstance(step, int):
        return parts[step] if 0 <= step < len(parts) else None
    if kind != OBJECT or isinstance(step, int):
        return None
    wanted, count = step.encode(), len(parts) // 2
    for (_, first, last), value in zip(parts[:count], parts[count:], strict=True):
        if last - first == len(wanted) and data[first:last] == wanted:
            return value
    return None


def items(data: bytes, part: Span) -> list[Span] | None:
    """Return the items of an array; None for anything else."""
    entry, start, stop = part
    if entry != CONTAINER:
        return None
    kind, parts = read_container(data, start, stop)
    return parts if kind == ARRAY else None

"""The reference's `lance.debug`: metadata of a table as text for people.

A structure is its name and its members in braces, one on a line. An empty structure and a list of numbers take one
line. Bytes are shown as their count. Secrets in URIs are redacted. The format of the text may change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from itertools import islice

from pyroaring import AbstractBitMap

from lance_ops.api import FragmentMetadata, LanceDataset
from lance_ops.core.redaction import redact
from lance_ops.core.schema import Field, Schema
from lance_ops.snapshot import history

__all__ = ["format_fragment", "format_manifest", "format_schema", "list_transactions"]

_STEP = "    "


def format_schema(dataset: LanceDataset) -> str:
    """Return the schema with the fields' ids and logical types."""
    return _text(dataset.snapshot.manifest.schema)


def format_manifest(dataset: LanceDataset) -> str:
    """Return the manifest of the handle's version, with all fragments."""
    return _text(dataset.snapshot.manifest)


def format_fragment(fragment: FragmentMetadata, dataset: LanceDataset) -> str:
    """Return a fragment, and for each of its files the schema of the columns in the file."""
    table = dataset.snapshot.manifest.schema
    parts = dict(_members(fragment))
    parts["files"] = [
        _Structure("DataFile", {**dict(_members(file)), "schema": Schema(_held(table.fields, file.fields))})
        for file in fragment.files
    ]
    return _text(_Structure("Fragment", parts))


def list_transactions(dataset: LanceDataset, /, max_transactions: int = 10) -> list[str | None]:
    """Return texts of the transactions of the handle's version and those before it; None for one that was not kept."""
    newest = islice(history(dataset.snapshot), max_transactions)
    return [None if each.transaction is None else _text(each.transaction) for each in newest]


def _held(columns: Iterable[Field], ids: Collection[int]) -> tuple[Field, ...]:
    """Return the fields of these ids and those above them. A file names the leaves and no structs above them."""
    pruned = [replace(column, children=_held(column.children, ids)) for column in columns]
    return tuple(column for column in pruned if column.id in ids or column.children)


class _Structure:
    """A name with members, which is shown as a dataclass is."""

    def __init__(self, name: str, parts: Mapping[str, object]) -> None:
        self.name = name
        self.parts = parts


def _text(value: object) -> str:
    return redact("\n".join(_lines(value, "")))


def _lines(value: object, indent: str) -> list[str]:
    """Return a value's text; `indent` stands before each line but the first."""
    if is_dataclass(value) and not isinstance(value, type):
        value = _Structure(type(value).__name__, dict(_members(value)))
    inner = indent + _STEP
    if isinstance(value, Enum):
        return [value.name or str(value)]
    if isinstance(value, _Structure):
        entries = [(f"{name}: ", part) for name, part in value.parts.items()]
        return _block(f"{value.name} {{", entries, "}", indent)
    if isinstance(value, Mapping):
        return _block("{", [(f"{_short(key)}: ", part) for key, part in value.items()], "}", indent)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | AbstractBitMap):
        items = list(value)
        if all(isinstance(item, int) for item in items):
            return [str(items)]
        return ["[", *(line for item in items for line in _entry(inner, "", item)), f"{indent}]"]
    return [_short(value)]


def _block(start: str, entries: list[tuple[str, object]], end: str, indent: str) -> list[str]:
    inner = indent + _STEP
    lines = [line for label, part in entries for line in _entry(inner, label, part)]
    return [start, *lines, f"{indent}{end}"] if lines else [start + end]


def _entry(indent: str, label: str, value: object) -> list[str]:
    first, *others = _lines(value, indent)
    lines = [f"{indent}{label}{first}", *others]
    return [*lines[:-1], f"{lines[-1]},"]


def _members(value: object) -> Iterable[tuple[str, object]]:
    """Yield the members of a dataclass; unknown fields of a newer writer only where there are any."""
    for each in fields(value):  # type: ignore[arg-type]  # the callers pass dataclasses
        part = getattr(value, each.name)
        if part or not each.name.startswith("unknown"):
            yield each.name, part


def _short(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, AbstractBitMap):
        return f"[{', '.join(_runs(value))}]"
    return str(value)


def _runs(numbers: Iterable[int]) -> Iterable[str]:
    """Yield consecutive numbers as one range, such as 0-9."""
    start = stop = None
    for number in numbers:
        if start is None or stop is None:
            start = stop = number
        elif number == stop + 1:
            stop = number
        else:
            yield _run(start, stop)
            start = stop = number
    if start is not None and stop is not None:
        yield _run(start, stop)


def _run(start: int, stop: int) -> str:
    return str(start) if start == stop else f"{start}-{stop}"

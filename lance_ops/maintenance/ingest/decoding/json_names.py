"""Compare the names of JSON's fields with a table's: in any case, at any depth, and those that the table lacks."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.maintenance.ingest.decoding.json_bytes import parsed_lines
from lance_ops.maintenance.ingest.decoding.requests import BLOCK_BYTES, DecodingRefused, RawRequest, RawSource
from lance_ops.maintenance.ingest.decoding.text_values import is_list

__all__ = ["as_spelled", "fields_of", "names_at_any_depth", "unknown_field_message"]


def as_spelled(source: RawSource, lead: pa.Schema, names: Mapping[bytes, str]) -> pa.Schema:
    """Return the lead with the spelling that the file's keys have, also within structs; `names` are keys of any row.

    Refuses a file that spells one field in two ways. Only lines with such keys are parsed.
    """
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for name in (*names_at_any_depth(lead), *names.values()):
        alike[name.lower()].add(name)
    several = {name for name, spellings in alike.items() if len(spellings) > 1}
    marks = [re.escape(key) for key, name in names.items() if name.lower() in several]
    if not marks:
        return lead
    lines: defaultdict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
    for number, value in parsed_lines(source, re.compile(b"|".join(marks))):
        for path, name in _spellings(value, pa.struct(lead)):
            lines[path].setdefault(name, number)
    for path, by_name in lines.items():
        if len(by_name) > 1:
            first, second, *_ = by_name
            field = json.dumps(".".join((*path[:-1], second)))
            raise DecodingRefused(
                f"line {by_name[second]}: the field {field} is {json.dumps(first)} in line {by_name[first]}, "
                "and both are one column: spell it in one way"
            )
    return pa.schema(_respelled(lead, {path: next(iter(by_name)) for path, by_name in lines.items()}))


def _spellings(value: object, kind: pa.DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path in the type of each field of a value that the type has in any case, and the name in the value."""
    if isinstance(value, list) and is_list(kind):
        for item in value:
            yield from _spellings(item, kind.value_type, path)
    if isinstance(value, dict) and pt.is_struct(kind):
        known = [child.name for child in kind]
        for name, item in value.items():
            alike = [name] if name in known else [each for each in known if each.lower() == name.lower()]
            if len(alike) == 1:
                yield (*path, alike[0]), name
                yield from _spellings(item, kind.field(alike[0]).type, (*path, alike[0]))


def _respelled(
    fields: Iterable[pa.Field], names: Mapping[tuple[str, ...], str], path: tuple[str, ...] = ()
) -> list[pa.Field]:
    """Return fields with the names that their paths have, also of those within structs."""
    made = []
    for each in fields:
        below = (*path, each.name)
        made.append(each.with_name(names.get(below, each.name)).with_type(_type_respelled(each.type, names, below)))
    return made


def _type_respelled(kind: pa.DataType, names: Mapping[tuple[str, ...], str], path: tuple[str, ...]) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct(_respelled(kind, names, path))
    if is_list(kind):
        items = _type_respelled(kind.value_type, names, path)
        return kind if items == kind.value_type else pa.list_(items)
    return kind


def names_at_any_depth(fields: Iterable[pa.Field]) -> Iterator[str]:
    """Yield the names of fields and of those within them."""
    for each in fields:
        yield each.name
        yield from names_at_any_depth(fields_of(each.type))


def fields_of(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(at) for at in range(kind.num_fields)]


def unknown_field_message(row: object, kind: pa.DataType, request: RawRequest) -> str:
    """Return the first field that a row has and the type lacks, with what to do; or an empty text.

    Without a lead a field is unknown if no row of the first block has it, because then it has no type yet.
    """
    for name, alike in _fields_outside(row, kind):
        field, others = f"the field {json.dumps(name)}", " or ".join(map(json.dumps, alike))
        if request.lead is None:
            rule = f"a field must occur in the first {BLOCK_BYTES:,} bytes"
            return f"{field} is in no earlier row, and {rule}: put a row with all fields first"
        if request.any_case and len(alike) == 1:
            return f"{field} is {others} in another line, and both are one column: spell it in one way"
        return f"{field}{f', unlike {others},' * bool(alike)} is not in the table: add it to the table, or ignore it"
    return ""


def _fields_outside(value: object, kind: pa.DataType, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the dotted name of each field that the value has and the type lacks.

    With it come the names of the type's fields that differ from it only in upper and lower case.
    """
    if isinstance(value, list) and pt.is_list(kind):
        for item in value:
            yield from _fields_outside(item, kind.value_type, path)
    if isinstance(value, dict) and pt.is_struct(kind):
        for name, item in value.items():
            if kind.get_field_index(name) >= 0:
                yield from _fields_outside(item, kind.field(name).type, f"{path}{name}.")
            else:
                yield path + name, [child.name for child in kind if child.name.lower() == name.lower()]

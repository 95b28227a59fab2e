"""Names of columns, as a filter writes them, found in a schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import pyarrow as pa

from lance_ops.core.errors import InvalidFilter
from lance_ops.core.predicate.tree import Column

__all__ = ["Name", "resolve"]


@dataclass(frozen=True)
class Name:
    """One name of a path; without quotes its case does not matter unless two columns differ by nothing else."""

    text: str
    exact: bool = True


def resolve(schema: pa.Schema, path: Sequence[Name]) -> Column:
    """Find the column or nested field; raises `InvalidFilter` that names what is there instead."""
    fields: Iterable[pa.Field] = schema
    found: list[pa.Field] = []
    for name in path:
        if found:
            fields = _fields_of(found, name)
        found.append(_pick(name, list(fields), found))
    return Column(tuple(field.name for field in found), found[-1].type)


def _fields_of(parents: list[pa.Field], name: Name) -> list[pa.Field]:
    parent = parents[-1].type
    if isinstance(parent, pa.BaseExtensionType):
        parent = parent.storage_type
    if not pa.types.is_struct(parent):
        raise InvalidFilter(f"column {_dotted(parents)!r} is {parent} and has no field {name.text!r}")
    return [parent.field(index) for index in range(parent.num_fields)]


def _pick(name: Name, fields: list[pa.Field], parents: list[pa.Field]) -> pa.Field:
    matches = [field for field in fields if field.name == name.text]
    if not matches and not name.exact:
        matches = [field for field in fields if field.name.casefold() == name.text.casefold()]
    if len(matches) == 1:
        return matches[0]
    where = f" in {_dotted(parents)!r}" if parents else ""
    if matches:
        spelled = ", ".join(f"`{field.name}`" for field in matches)
        raise InvalidFilter(f"column {name.text!r}{where} may be any of {spelled}: put the one meant in back quotes")
    names = {field.name.casefold(): field.name for field in fields}
    near = [names[key] for key in get_close_matches(name.text.casefold(), names, n=3)]
    known = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(names.values())}"
    raise InvalidFilter(f"no column {name.text!r}{where}; {known}")


def _dotted(fields: list[pa.Field]) -> str:
    return ".".join(field.name for field in fields)

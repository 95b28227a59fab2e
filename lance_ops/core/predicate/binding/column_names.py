"""Names of columns and of fields inside structs, as a filter writes them, found in a schema."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import pyarrow as pa

from lance_ops.core.errors import InvalidFilter
from lance_ops.core.predicate.tree import Column, Expression, Literal, StructField
from lance_ops.core.records import dataclass

__all__ = ["Name", "field_of", "resolve"]


@dataclass(frozen=True)
class Name:
    """One name of a path; without quotes its case does not matter unless two columns differ by nothing else."""

    text: str
    exact: bool = True


def resolve(schema: pa.Schema, path: Sequence[Name]) -> Column:
    """Find the column or nested field; raises `InvalidFilter` that names what is there instead."""
    first, *rest = path
    field = _pick(first, list(schema), "")
    column = Column((field.name,), field.type)
    for name in rest:
        column = _field_of_column(column, name)
    return column


def field_of(structs: Expression, name: Name) -> Expression:
    """Return a field of structs; raise `InvalidFilter` as `resolve` does.

    A field of a column is a column itself, for which there may be statistics and an index. A field of NULL is NULL.
    """
    if isinstance(structs, Literal) and pa.types.is_null(structs.type):
        return structs
    if isinstance(structs, Column):
        return _field_of_column(structs, name)
    field = _pick(name, _fields_of(structs, structs.to_sql(), name), structs.to_sql())
    return StructField(structs, field.name, field.type)


def _field_of_column(column: Column, name: Name) -> Column:
    shown = repr(".".join(column.path))
    field = _pick(name, _fields_of(column, f"column {shown}", name), shown)
    return Column((*column.path, field.name), field.type)


def _fields_of(structs: Expression, shown: str, name: Name) -> list[pa.Field]:
    kind = structs.stored_type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if not pa.types.is_struct(kind):
        raise InvalidFilter(f"{shown} is {kind} and has no field {name.text!r}")
    return [kind.field(index) for index in range(kind.num_fields)]


def _pick(name: Name, fields: list[pa.Field], parent: str) -> pa.Field:
    matches = [field for field in fields if field.name == name.text]
    if not matches and not name.exact:
        matches = [field for field in fields if field.name.casefold() == name.text.casefold()]
    if len(matches) == 1:
        return matches[0]
    where = f" in {parent}" if parent else ""
    if matches:
        spelled = ", ".join(f"`{field.name}`" for field in matches)
        raise InvalidFilter(f"column {name.text!r}{where} may be any of {spelled}: put the one meant in back quotes")
    names = {field.name.casefold(): field.name for field in fields}
    near = [names[key] for key in get_close_matches(name.text.casefold(), names, n=3)]
    known = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(names.values())}"
    raise InvalidFilter(f"no column {name.text!r}{where}; {known}")

"""Add, drop or replace fields of a schema; every remaining field keeps its id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema.field import NO_PARENT, Dictionary, Field
from lance_ops.core.schema.limits import check_column_name
from lance_ops.core.schema.schema import Schema

__all__ = [
    "check_sibling_names",
    "renumbered",
    "with_dictionaries",
    "with_field",
    "with_new_fields",
    "without_fields",
]

_STRUCT = "struct"
_PANDAS = "pandas"


def with_new_fields(schema: Schema, added: pa.Schema, first_id: int) -> tuple[Schema, Schema]:
    """Return the schema with fields added, numbered from `first_id`, and a schema of only the new fields.

    An existing struct gets the children that it lacks from the added struct of the same name. The schema gets the keys
    of metadata that it lacks, except pandas' description of a data frame. Raises `InvalidInput` for a name that exists,
    and for one that no column may have.
    """
    for name in added.names:
        check_column_name(name)
    ids = iter(range(first_id, 1 << 31))
    root = Field(NO_PARENT, NO_PARENT, "", _STRUCT, children=schema.fields)
    given = Schema.from_arrow(added)
    whole, new = _merged(root, replace(root, children=given.fields), ids, "")
    metadata = {key: value for key, value in given.metadata.items() if key != _PANDAS}
    return replace(schema, fields=whole.children, metadata={**metadata, **schema.metadata}), Schema(new.children)


def without_fields(schema: Schema, paths: Sequence[str]) -> Schema:
    """Return the schema without the fields at these paths; a struct that loses its last child goes too.

    Raises `InvalidInput` for an unknown path, for a path into a list or map, and if no column would remain.
    """
    gone = set()
    for path in paths:
        field = schema.field(path)
        parent = schema.by_id(field.parent_id)
        if parent is not None and parent.logical_type != _STRUCT:
            raise InvalidInput(f"column {path!r} is inside a {parent.logical_type}: drop it as a whole")
        gone.add(field.id)

    def kept(field: Field) -> Field | None:
        if field.id in gone:
            return None
        children = tuple(child for part in field.children if (child := kept(part)) is not None)
        return None if field.children and not children else replace(field, children=children)

    fields = tuple(left for field in schema.fields if (left := kept(field)) is not None)
    if not fields:
        raise InvalidInput("this would drop all columns; a table needs at least one")
    return replace(schema, fields=fields)


def with_field(schema: Schema, field_id: int, change: Callable[[Field], Field]) -> Schema:
    """Return the schema with one field changed; `check_sibling_names` tells whether its new name is free."""

    def among(siblings: tuple[Field, ...]) -> tuple[Field, ...]:
        return tuple(
            change(field) if field.id == field_id else replace(field, children=among(field.children))
            for field in siblings
        )

    return replace(schema, fields=among(schema.fields))


def check_sibling_names(schema: Schema) -> None:
    """Raise `InvalidInput` if two columns, or two fields of a struct, have one name."""

    def among(siblings: tuple[Field, ...]) -> None:
        names = [field.name for field in siblings]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidInput(f"two columns would be called {twice!r}")
        for field in siblings:
            among(field.children)

    among(schema.fields)


def with_dictionaries(schema: Schema, dictionary_of: Callable[[Field], Dictionary | None]) -> Schema:
    """Return the schema with a new dictionary for each dictionary column; they are visited in pre-order."""

    def changed(field: Field) -> Field:
        if field.is_dictionary:
            return replace(field, dictionary=dictionary_of(field))
        return replace(field, children=tuple(map(changed, field.children))) if field.children else field

    if not schema.has_dictionaries:
        return schema
    return replace(schema, fields=tuple(map(changed, schema.fields)))


def renumbered(field: Field, first_id: int, parent_id: int = NO_PARENT) -> Field:
    """Return a field with new ids for it and all fields below it, counted in pre-order from `first_id`."""
    return _numbered(field, iter(range(first_id, 1 << 31)), parent_id)


def _numbered(field: Field, ids: Iterator[int], parent_id: int) -> Field:
    own = next(ids)
    children = tuple(_numbered(child, ids, own) for child in field.children)
    return replace(field, id=own, parent_id=parent_id, children=children)


def _merged(known: Field, added: Field, ids: Iterator[int], path: str) -> tuple[Field, Field]:
    """Return a struct with the children that it lacked, and the struct with only those children."""
    if known.logical_type != _STRUCT or added.logical_type != _STRUCT:
        raise InvalidInput(f"column {path!r} exists already")
    children, new = list(known.children), []
    for child in added.children:
        place = next((place for place, other in enumerate(children) if other.name == child.name), None)
        if place is None:
            children.append(_numbered(child, ids, known.id))
            new.append(children[-1])
        else:
            inside = f"{path}.{child.name}" if path else child.name
            children[place], part = _merged(children[place], child, ids, inside)
            new.append(part)
    return replace(known, children=tuple(children)), replace(known, children=tuple(new))

"""Read an old version of a table with columns that later versions added: they are null in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import Field, Schema
from lance_ops.snapshot import Snapshot

__all__ = ["with_later_columns"]


def with_later_columns(snapshot: Snapshot, newest: Schema) -> Snapshot:
    """Return a version as if it had the columns and struct fields of `newest` that it lacks: its files have none.

    Raises `InvalidInput` naming a column that the version has under another name: nulls would stand for its values.
    """
    for field in _lacking(snapshot.schema.fields, newest.fields):
        for each in field.walk():
            known = snapshot.schema.by_id(each.id)
            if known is not None:
                raise InvalidInput(
                    f"{snapshot.uri}: column {each.name!r} is called {known.name!r} in version {snapshot.version}, "
                    "which the stream has not read yet: rename it back until the stream has read the versions before "
                    "the new name, or start again with a new checkpoint"
                )
    schema = replace(snapshot.schema, fields=_joined(snapshot.schema.fields, newest.fields))
    return snapshot.with_manifest(replace(snapshot.manifest, schema=schema))


def _joined(fields: Sequence[Field], newest: Sequence[Field]) -> tuple[Field, ...]:
    later = {field.name: field for field in newest}
    kept = (
        replace(field, children=_joined(field.children, later[field.name].children))
        if field.logical_type == "struct" and field.name in later
        else field
        for field in fields
    )
    names = {field.name for field in fields}
    return (*kept, *(field for field in newest if field.name not in names))


def _lacking(fields: Sequence[Field], newest: Sequence[Field]) -> Iterator[Field]:
    by_name = {field.name: field for field in fields}
    for field in newest:
        if field.name not in by_name:
            yield field
        elif field.logical_type == "struct":
            yield from _lacking(by_name[field.name].children, field.children)

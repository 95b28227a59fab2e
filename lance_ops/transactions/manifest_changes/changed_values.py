"""Find the fragments in which a version changed values that an index holds.

A file of 2.1 or later lists only the fields that it has columns for: the leaves. So the values of a list are in the
columns of the fields below it. A packed struct is one column, which holds the values of the fields below it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from lance_ops.core.schema import Schema
from lance_ops.table import Fragment, Manifest

__all__ = ["FieldFiles", "fragments_with_changed_values"]

_Place: TypeAlias = tuple[int | None, str]
"""The `place` of a file."""


class FieldFiles:
    """The files that hold the values of some fields of a schema, in each fragment."""

    def __init__(self, schema: Schema, field_ids: Iterable[int]) -> None:
        self._columns = {field_id: _columns_of(schema, field_id) for field_id in field_ids}
        self._any_column = frozenset[int]().union(*(ids for columns in self._columns.values() for ids in columns))

    def of(self, fragment: Fragment) -> Mapping[int, frozenset[_Place]]:
        """Return the files that hold each field's values: none for a field that is null in the whole fragment."""
        listing: dict[int, set[_Place]] = {}
        for file in fragment.files:
            for field_id in file.live_fields:
                if field_id in self._any_column:
                    listing.setdefault(field_id, set()).add(file.place)
        return {field_id: _first_listed(columns, listing) for field_id, columns in self._columns.items()}


def fragments_with_changed_values(before: Manifest, after: Manifest, fields: Iterable[int]) -> frozenset[int]:
    """Return the fragments of both versions in which a field's values moved to another file, or first got a file."""
    changed = after.fragments.changes_since(before.fragments).new
    if not changed:
        return frozenset()
    fields = tuple(fields)
    old, new = FieldFiles(before.schema, fields), FieldFiles(after.schema, fields)
    old_files = {each.id: old.of(each) for each in before.fragments.having({fragment.id for fragment in changed})}
    return frozenset(
        fragment.id for fragment in changed if fragment.id in old_files and old_files[fragment.id] != new.of(fragment)
    )


def _columns_of(schema: Schema, field_id: int) -> tuple[frozenset[int], ...]:
    """Return the fields whose columns may hold a field's values; the first of the sets that a file lists counts.

    They are the field with those below it, or else the nearest field above it.
    """
    node = schema.by_id(field_id)
    if node is None:
        return (frozenset({field_id}),)
    columns = [frozenset(part.id for part in node.walk())]
    while (node := schema.by_id(node.parent_id)) is not None:
        columns.append(frozenset({node.id}))
    return tuple(columns)


def _first_listed(columns: Iterable[frozenset[int]], listing: Mapping[int, set[_Place]]) -> frozenset[_Place]:
    for field_ids in columns:
        found = frozenset[_Place]().union(*(listing[field_id] for field_id in field_ids if field_id in listing))
        if found:
            return found
    return frozenset()

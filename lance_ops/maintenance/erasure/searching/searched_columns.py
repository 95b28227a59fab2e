"""Tell whether the search of some versions also covers the rows of a version that the filter does not fit.

A version that lacks a column of the filter shows no such row by itself. Its fragment shares the fate of a searched one
that stores the columns which it does have in the same files, in a version that still has all of its columns. A row that
was deleted before the missing column was added has no value there, in any version.

If the searched version lacks one of its columns, the missing column may hold that column's values: a cast writes them
to another file, where a row that was deleted before has null, and may give the column a new name at once. So such a
search does not cover the version. A column is the same one if its id, its name and its type are: the id of a dropped
column may be assigned to a new one. A renamed column counts as missing, which removes more than it must.

A version that has all columns, in types that the filter does not fit, is never covered. A searched version may have
them in other files, which hold null for a row that was deleted before they were written: a cast writes such a file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from lance_ops.core.predicate import Predicate
from lance_ops.core.schema import Field, Schema, split_path
from lance_ops.maintenance.erasure.searching.row_search import columns_read
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment

__all__ = ["SearchedColumns", "uris_of"]

StoredField: TypeAlias = tuple[int, str]
"""The id of a field, and the URI of the data file that stores it."""


KnownField: TypeAlias = tuple[int, str, str]
"""The id, the name and the logical type of a field."""


class _Searched(NamedTuple):
    """Where a searched fragment stores the filter's columns, and all fields of its version."""

    stored: frozenset[StoredField]
    fields: frozenset[KnownField]


class SearchedColumns:
    """The columns that the filter reads in the versions that it fits, and the files in which these were searched."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._searched: defaultdict[str, set[_Searched]] = defaultdict(set)

    def note(self, version: Snapshot, predicate: Predicate, fragments: Iterable[Fragment]) -> None:
        """Remember that these fragments of a version were searched."""
        self._paths.update(dict.fromkeys(predicate.columns()))
        columns, fields = columns_read(version, predicate), _known_fields(version.schema)
        for fragment in fragments:
            searched = _Searched(_stored(version, fragment, columns), fields)
            for uri in uris_of(version, fragment):
                self._searched[uri].add(searched)

    def uncovered(self, version: Snapshot) -> list[Fragment]:
        """Return the fragments that the searches do not cover, of a version that the filter does not fit."""
        columns = [_column(version.schema, path) for path in self._paths]
        present = [column for column in columns if column is not None]
        if len(present) == len(columns):
            return list(version.fragments)
        fields = _known_fields(version.schema)
        return [
            each
            for each in version.fragments
            if not self._covers(uris_of(version, each), _Searched(_stored(version, each, present), fields))
        ]

    def _covers(self, uris: Iterable[str], wanted: _Searched) -> bool:
        return any(
            wanted.stored <= searched.stored and wanted.fields <= searched.fields
            for uri in uris
            for searched in self._searched.get(uri, ())
        )


def uris_of(version: Snapshot, fragment: Fragment) -> list[str]:
    """Return the URIs of a fragment's data files."""
    locations = version.file_locations
    return [locations.data_file(file.base_id, file.path).uri for file in fragment.files]


def _column(schema: Schema, path: str) -> Field | None:
    """Return what a version has at a path, whatever the case of the names; None if it has nothing there.

    A column that is no struct stands for every path into it: it may hold the same values in another form.
    """
    siblings, found = schema.fields, None
    for name in split_path(path):
        if found is not None and found.logical_type != "struct":
            break
        alike = [each for each in siblings if each.name.lower() == name.lower()]
        if not alike:
            return None
        found = next((each for each in alike if each.name == name), alike[0])
        siblings = found.children
    return found


def _known_fields(schema: Schema) -> frozenset[KnownField]:
    return frozenset((field.id, field.name, field.logical_type) for field in schema.walk())


def _stored(version: Snapshot, fragment: Fragment, columns: Iterable[Field]) -> frozenset[StoredField]:
    ids = frozenset(field.id for column in columns for field in column.walk())
    return frozenset(
        (field_id, uri)
        for uri, file in zip(uris_of(version, fragment), fragment.files, strict=True)
        for field_id in ids.intersection(file.fields)
    )

"""Read each version of a stream in the columns that the stream was loaded with.

A name means the column that it named in the version that `load` saw. In another version the column is the one with the
same field id. A change of type gives a column a new id, and an overwrite gives all columns new ones: the versions in
between tell which column it was before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lance_ops.core.errors import InvalidInput, VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source.options import SourceOptions
from lance_ops.transactions import CommittedVersion, Overwrite, read_version

__all__ = ["START_AGAIN", "LoadedColumns", "open_loaded"]

START_AGAIN = "start again with a new checkpoint, and keep versions longer than a stream may stand still"


def open_loaded(options: SourceOptions, loaded: SourceOptions | None) -> Snapshot:
    """Open the version that `load` saw, or the newest one if that version is gone."""
    if loaded is not None:
        try:
            return loaded.open()
        except VersionNotFound:
            pass
    return options.open()


@dataclass(frozen=True)
class LoadedColumns:
    """The columns that a stream needs, as the version that it was loaded from has them."""

    version: int
    schema: Schema

    def of(self, snapshot: Snapshot) -> Snapshot:
        """Return a version with these columns and no others, or as it is if it has all of them under their names.

        A column that came after the version is null in it. Raises `InvalidInput` for a column that the version has
        under another name, or that it has no more. Raises `VersionNotFound` if a version is gone that would tell what
        a column was before.
        """
        stored = snapshot.schema
        if all(_is_at(stored, self.schema, field) for field in self.schema.walk()):
            return snapshot
        if snapshot.version > self.version:
            raise self._changed_since(snapshot)
        origins = self._origins(snapshot)
        for field in self.schema.walk():
            origin = origins[field.id]
            name = self.schema.path_of(field.id)
            if origin is not None and stored.path_of(origin.id) != name:
                raise InvalidInput(
                    f"{snapshot.uri}: column {name!r} is called {stored.path_of(origin.id)!r} in version "
                    f"{snapshot.version}, which the stream has not read yet: rename it back until the stream has read "
                    "the versions before the new name, or start again with a new checkpoint"
                )
        unused_id = max(snapshot.manifest.max_field_id, self.schema.max_field_id) + 1
        fields = tuple(_as_stored(field, origins, unused_id, field.parent_id) for field in self.schema.fields)
        schema = replace(stored, fields=fields)
        return snapshot.with_manifest(replace(snapshot.manifest, schema=schema, indices=()))

    def _changed_since(self, snapshot: Snapshot) -> InvalidInput:
        """Return the error for a version after the one that the stream was loaded from."""
        stored = snapshot.schema
        field = next(field for field in self.schema.walk() if not _is_at(stored, self.schema, field))
        name, found = self.schema.path_of(field.id), "not in"
        if stored.path_of(field.id) not in ("", name):
            found = f"called {stored.path_of(field.id)!r} in"
        return InvalidInput(
            f"{snapshot.uri}: column {name!r} of version {self.version}, which the stream was "
            f"loaded from, is {found} version {snapshot.version}: load it again"
        )

    def _origins(self, snapshot: Snapshot) -> Mapping[int, Field | None]:
        """Return, by id, what each column was in an earlier version: None if it came later."""
        stored = snapshot.schema
        ids = {field.id: field.id for field in self.schema.walk()}
        paths = _ids_by_path(stored)
        unlike = [field.id for field in self.schema.walk() if not _is_at(stored, self.schema, field)]
        if any(field_id in stored.ids or self.schema.path_of(field_id) in paths for field_id in unlike):
            later = _read(snapshot, self.version)
            for version in range(self.version - 1, snapshot.version - 1, -1):
                earlier = _read(snapshot, version)
                before = _ids_before(earlier.manifest.schema, later)
                ids = {column: before[known] for column, known in ids.items() if known in before}
                later = earlier
        return {field.id: stored.by_id(ids[field.id]) if field.id in ids else None for field in self.schema.walk()}


def _ids_before(earlier: Schema, later: CommittedVersion) -> dict[int, int]:
    """Return the ids that the columns of a version had in the version before it, by their ids in the later one."""
    after, paths = later.manifest.schema, _ids_by_path(earlier)
    is_new_table = later.transaction is not None and isinstance(later.transaction.operation, Overwrite)
    before: dict[int, int] = {}
    for path, field_id in _ids_by_path(after).items():
        if field_id in earlier.ids and not is_new_table:
            before[field_id] = field_id
        elif path in paths and (is_new_table or paths[path] not in after.ids):
            before[field_id] = paths[path]  # one commit removed the one and added the other: it has another type now
    return before


def _as_stored(field: Field, origins: Mapping[int, Field | None], unused_id: int, parent_id: int) -> Field:
    """Return what a column was in an earlier version; one that came later gets an id that no file of it has."""
    origin = origins[field.id]
    found = replace(field, id=field.id + unused_id, parent_id=parent_id) if origin is None else origin
    if origin is not None and not (field.logical_type == origin.logical_type == "struct"):
        return origin
    return replace(found, children=tuple(_as_stored(child, origins, unused_id, found.id) for child in field.children))


def _is_at(stored: Schema, schema: Schema, field: Field) -> bool:
    """Return whether a version has a column under its id and name, in its type: a free id may be used again."""
    found = stored.by_id(field.id)
    if found is None or found.logical_type != field.logical_type:
        return False
    return stored.path_of(field.id) == schema.path_of(field.id)


def _ids_by_path(schema: Schema) -> dict[str, int]:
    return {schema.path_of(field.id): field.id for field in schema.walk()}


def _read(snapshot: Snapshot, version: int) -> CommittedVersion:
    try:
        return read_version(snapshot.store, snapshot.committer, version)
    except VersionNotFound as error:
        raise VersionNotFound(
            f"{error}: it would tell what the stream's columns were in version {snapshot.version}; {START_AGAIN}"
        ) from error

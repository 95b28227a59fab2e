"""Drop, rename and cast columns, and allow or forbid nulls in them.

Only a cast writes files: it gives the column a new field, with a new file in every fragment. A file of old values
leaves its fragment when the schema has none of its fields any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lance_ops.changing.columns.backfill import plan_backfill, run_backfill
from lance_ops.changing.columns.casts import is_castable
from lance_ops.changing.columns.column_file import fragments_with_column_files, pending_columns
from lance_ops.changing.columns.column_sources import CastColumns
from lance_ops.core.errors import InvalidInput
from lance_ops.core.predicate import Predicate, parse_filter
from lance_ops.core.predicate.tree import spell_path
from lance_ops.core.records import dataclass
from lance_ops.core.schema import (
    Field,
    Schema,
    check_column_name,
    check_sibling_names,
    renumbered,
    split_path,
    with_field,
    without_fields,
)
from lance_ops.reading import scan_rows
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.transactions import Merge, Project
from lance_ops.writing import TaskShare, commit_operation, share_rows

__all__ = ["Alteration", "alter_columns", "commit_new_types", "drop_columns"]

Properties = Mapping[str, str] | None


@dataclass(frozen=True)
class Alteration:
    """Changes of the column at `path`; None leaves a property as it is."""

    path: str
    name: str | None = None
    nullable: bool | None = None
    data_type: pa.DataType | None = None

    def __post_init__(self) -> None:
        if self.name is None and self.nullable is None and self.data_type is None:
            raise InvalidInput(f"alteration of {self.path!r}: say its name, nullable or data_type")
        if self.name is not None:
            check_column_name(self.name)

    def then(self, other: Alteration) -> Alteration:
        """Return this alteration with the properties that `other` changes too."""
        given = {name: value for name, value in vars(other).items() if value is not None}
        return replace(self, **given)

    def field_in(self, snapshot: Snapshot) -> Field:
        """Return the field at the path; raise `InvalidInput` if there is none."""
        return snapshot.schema.field(self.path)

    def casts(self, field: Field) -> bool:
        """Return whether the alteration gives this field another type."""
        return self.data_type is not None and self.data_type != field.arrow_type


def drop_columns(snapshot: Snapshot, paths: Sequence[str], properties: Properties = None) -> Snapshot:
    """Drop columns, or fields of structs, from the schema; their values stay in the files until a compaction.

    Raises `InvalidInput` for a column that does not exist, and if no column would be left.
    """
    schema = without_fields(snapshot.schema, paths)
    return commit_operation(snapshot, Project(schema, preserves_nullability=True), properties=properties)


def alter_columns(
    snapshot: Snapshot, alterations: Sequence[Alteration], runner: Runner, properties: Properties = None
) -> Snapshot:
    """Make all alterations in one commit; their paths name the columns as they are before it.

    Several alterations of one column are one alteration; of two that change the same property, the last one decides.
    Tasks of the runner write the values of new types, and look for nulls where these shall be forbidden.
    Raises `InvalidInput` for a name that exists, for nulls in a column that shall forbid them and for a value that does
    not fit the new type. Raises `RetryableConflict` when a concurrent transaction changed fragments of a cast: plan
    again on the newest version.
    """
    fields: dict[int, Alteration] = {}
    for each in alterations:
        field = snapshot.schema.field(each.path)
        fields[field.id] = fields[field.id].then(each) if field.id in fields else each
    forbidding = [each for each in fields.values() if each.nullable is False and each.field_in(snapshot).nullable]
    casts = [each for each in fields.values() if each.casts(each.field_in(snapshot))]
    if forbidding and casts:
        raise InvalidInput("cast first, and forbid nulls in a second call")
    _check_casts_apart(snapshot, casts)
    for each in forbidding:
        _check_no_nulls(snapshot, each.path, runner)
    schema, next_id = snapshot.schema, snapshot.manifest.max_field_id + 1
    new_ids: set[int] = set()
    for field_id, each in fields.items():
        present = schema.by_id(field_id)
        if present is None:
            raise InvalidInput(f"column {each.path!r} is part of a column that is cast: alter it in a second call")
        altered = _altered(present, each, next_id)
        if altered.id != field_id:
            new_ids.add(altered.id)
            next_id += sum(1 for _ in altered.walk())
        schema = with_field(schema, field_id, lambda _, altered=altered: altered)  # type: ignore[misc]  # a default binds it
    check_sibling_names(schema)
    if not casts:
        return commit_operation(snapshot, Project(schema, preserves_nullability=not forbidding), properties=properties)
    return commit_new_types(snapshot, schema, [each.path for each in casts], new_ids, runner, properties)


def _check_casts_apart(snapshot: Snapshot, casts: Sequence[Alteration]) -> None:
    """Raise `InvalidInput` if a column is cast inside of a column that is cast too."""
    ids = {each.field_in(snapshot).id for each in casts}
    for each in casts:
        for node in each.field_in(snapshot).walk():
            if node.id in ids and node.id != each.field_in(snapshot).id:
                inner = snapshot.schema.path_of(node.id)
                raise InvalidInput(f"column {inner!r} is part of {each.path!r}, which is cast too: cast one of them")


def commit_new_types(
    snapshot: Snapshot,
    schema: Schema,
    cast_paths: Sequence[str],
    new_ids: set[int],
    runner: Runner,
    properties: Properties = None,
) -> Snapshot:
    """Write the columns at `cast_paths` with their types in `schema`, where their ids are `new_ids`, and commit it.

    Other new fields of the schema are null in the rows of the table.
    """
    columns = Schema(tuple(part for field in schema.fields if (part := _part_with(field, new_ids)) is not None))
    cast = {snapshot.schema.field(path).id for path in cast_paths}
    source = CastColumns(tuple(snapshot.schema.path_of(node.id) for node in snapshot.schema.walk() if node.id in cast))
    tasks = plan_backfill(snapshot, columns, source) if cast else ()
    files = run_backfill(snapshot, tasks, runner, Job.on("alter columns of", snapshot.uri, snapshot.version))
    pending = pending_columns(snapshot, files)
    with pending.abandoned_on_failure():
        # A concurrent writer's rows have no values in the new fields.
        may_be_null = all(node.nullable for node in columns.walk() if snapshot.schema.by_id(node.id) is None)
        operation = Merge(fragments_with_column_files(snapshot, schema, files), schema, may_be_null)
    return commit_operation(snapshot, operation, properties=properties, pending=pending)


def _altered(field: Field, alteration: Alteration, next_id: int) -> Field:
    """Return the field after the alteration; a cast gives it a new id."""
    if alteration.name is not None:
        field = replace(field, name=alteration.name)
    if alteration.nullable is not None:
        field = replace(field, nullable=alteration.nullable)
    wanted = alteration.data_type
    if wanted is None or wanted == field.arrow_type:
        return field
    if not is_castable(field.arrow_type, wanted):
        raise InvalidInput(f"column {alteration.path!r} is {field.arrow_type} and cannot be cast to {wanted}")
    as_arrow = pa.field(field.name, wanted, field.nullable)
    cast = replace(Schema.from_arrow(pa.schema([as_arrow])).fields[0], metadata=field.metadata)
    return renumbered(cast, next_id, field.parent_id)


def _part_with(field: Field, ids: set[int]) -> Field | None:
    """Return the field with only those descendants that have one of the ids or lie below one; None if there is none."""
    if field.id in ids:
        return field
    children = tuple(child for part in field.children if (child := _part_with(part, ids)) is not None)
    return replace(field, children=children) if children else None


def _check_no_nulls(snapshot: Snapshot, path: str, runner: Runner) -> None:
    """Raise `InvalidInput` if a live row has a null at the path; a null of an enclosing struct does not count."""
    shares = share_rows(snapshot, _null_at(snapshot.schema.to_arrow_storage(), path))
    job = Job.on("look for nulls in", snapshot.uri, snapshot.version).in_bytes(share.size_bytes for share in shares)
    if any(runner.map(_HasRows(SnapshotReference.of(snapshot)), shares, job)):
        raise InvalidInput(f"column {path!r} holds nulls: fill or delete those rows first")


@dataclass(frozen=True)
class _HasRows:
    """Tells whether a share has a row that matches; it reads no row after the first one."""

    snapshot: SnapshotReference

    def __call__(self, share: TaskShare) -> bool:
        snapshot = self.snapshot.open()
        return any(len(rows) for rows in scan_rows(snapshot, share.request(snapshot, Schema(()))))


def _null_at(schema: pa.Schema, path: str) -> Predicate:
    names = [path] if path in schema.names else split_path(path)
    enclosing = f" AND {spell_path(names[:-1])} IS NOT NULL" if len(names) > 1 else ""
    return parse_filter(f"{spell_path(names)} IS NULL{enclosing}", schema)

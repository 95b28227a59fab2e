"""Let a table's schema grow with incoming data: add columns, and give columns wider types, in one commit.

    plan_schema_change(table, given, …) -> SchemaChange      which columns are new or wider, from two Arrow schemas
    changed_schema(snapshot, change) -> Schema               the schema after it, with the ids of the new fields
    change_schema(snapshot, change, …) -> Snapshot           one `Merge`

Writers write rows for `changed_schema` first. The schema is committed when all of them are done, and the rows
after it. A crash between these two commits leaves columns without values, which the next attempt finds and uses.

A type is wider if it holds every value of the other one: a longer integer or float, a float that holds all integers, a
decimal with more digits on both sides of its point, any type for a column of type null, and lists of wider items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import pyarrow as pa
import pyarrow.types as pt

from lance_ops import refs
from lance_ops.changing.columns.alter import commit_new_types
from lance_ops.core.arrow import child_fields, is_any_list, with_child_fields
from lance_ops.core.blob_types import blobs_as_v2
from lance_ops.core.errors import RetryableConflict
from lance_ops.core.records import dataclass
from lance_ops.core.schema import (
    Field,
    Schema,
    check_depth,
    check_table_schema,
    renumbered,
    with_field,
    with_new_fields,
)
from lance_ops.core.versions import FileVersion
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.writing import CONFLICT_RETRIES, retry_conflicts

__all__ = ["SchemaChange", "change_schema", "changed_schema", "plan_schema_change"]

_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_FLOATS = ((pa.float16(), 11), (pa.float32(), 24), (pa.float64(), 53))


@dataclass(frozen=True)
class SchemaChange:
    """Columns to add, and the wider types of columns by path. `added` may have structs with only their new children."""

    added: pa.Schema = field(default_factory=lambda: pa.schema([]))
    widened: Mapping[str, pa.DataType] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added.names or self.widened)


def plan_schema_change(table: pa.Schema, given: pa.Schema) -> SchemaChange:
    """Return what a table of Arrow schema `table` lacks for rows of `given`, whose names are spelled as the table's.

    New columns allow nulls. A type that is neither equal nor wider is left out: a write casts its values or refuses
    them. A field within a list is left out, too, and so is a field of a struct without fields, because files store such
    a struct as one column without children.
    """
    widened: dict[str, pa.DataType] = {}
    added = _added(list(table), list(given), "", widened)
    return SchemaChange(pa.schema(added), widened)


def changed_schema(snapshot: Snapshot, change: SchemaChange) -> Schema:
    """Return the snapshot's schema after the change; raise `InvalidInput` for a name that no column may have."""
    return _changed(snapshot, change)[0]


def change_schema(snapshot: Snapshot, change: SchemaChange, wanted: Schema, runner: Runner) -> Snapshot:
    """Commit a change that was planned at the snapshot, with tasks of `runner` that write columns of a wider type.

    After a conflict it is tried again on the newest version. Raises `RetryableConflict` if another writer changed the
    schema so that `wanted`, the schema that rows were written for, cannot be reached any more.
    """
    planned = snapshot.schema

    def attempt(current: Snapshot) -> Snapshot:
        if current.schema == wanted:
            return current
        if current.schema != planned or changed_schema(current, change) != wanted:
            raise _SchemaMovedError
        schema, new_ids, widened = _changed(current, change)
        return commit_new_types(current, schema, widened, new_ids, runner)

    newest = snapshot.latest()
    kept = refs.keeping_version(attempt, newest) if change.widened else attempt
    try:
        return retry_conflicts(newest, kept, CONFLICT_RETRIES)
    except _SchemaMovedError as moved:
        raise RetryableConflict(
            f"{snapshot.uri}: the schema changed after the rows were written: write them again"
        ) from moved


class _SchemaMovedError(Exception):
    """Another writer changed the schema: to try the commit alone again is of no use."""


def _changed(snapshot: Snapshot, change: SchemaChange) -> tuple[Schema, set[int], list[str]]:
    """Return the new schema, the ids of the fields with a wider type, and the paths of those that hold values."""
    schema, next_id = snapshot.schema, snapshot.manifest.max_field_id + 1
    new_ids: set[int] = set()
    with_values: list[str] = []
    for path, wider in change.widened.items():
        before = snapshot.schema.field(path)
        after = _retyped(before, wider, next_id)
        if not pt.is_null(before.arrow_type):  # of nulls, the new field needs no file
            new_ids.add(after.id)
            with_values.append(path)
        next_id += sum(1 for _ in after.walk())
        schema = with_field(schema, before.id, lambda _, after=after: after)  # type: ignore[misc]  # a default binds it
    if change.added.names:
        check_depth(change.added)
        added = blobs_as_v2(change.added) if snapshot.file_version >= FileVersion.V2_2 else change.added
        schema, _ = with_new_fields(schema, added, next_id)
        check_table_schema(schema)
    return schema, new_ids, with_values


def _retyped(before: Field, wider: pa.DataType, next_id: int) -> Field:
    given = pa.schema([pa.field(before.name, wider, before.nullable, before.storage_field.metadata)])
    return renumbered(Schema.from_arrow(given).fields[0], next_id, before.parent_id)


def _added(table: list[pa.Field], given: list[pa.Field], above: str, widened: dict[str, pa.DataType]) -> list[pa.Field]:
    known = {field.name: field for field in table}
    new = []
    for field_ in given:
        path = above + (f"`{field_.name}`" if "." in field_.name else field_.name)
        if field_.name not in known:
            new.append(_nullable(field_))
            continue
        old_type, new_type = known[field_.name].type, field_.type
        if isinstance(old_type, pa.BaseExtensionType) or isinstance(new_type, pa.BaseExtensionType):
            continue
        if pt.is_struct(old_type) and pt.is_struct(new_type):
            # Files store a struct without fields as one column without children.
            below = _added(list(old_type), list(new_type), f"{path}.", widened) if old_type.num_fields else []
            if below:
                new.append(pa.field(field_.name, pa.struct(below)))
        elif _is_wider(old_type, new_type):
            widened[path] = _kept_list(old_type, new_type)
    return new


def _is_wider(old: pa.DataType, new: pa.DataType) -> bool:
    if pt.is_null(old):
        return not pt.is_null(new)
    if is_any_list(old) and is_any_list(new):
        return _is_wider(old.value_type, new.value_type)
    if old in _SIGNED and new in _SIGNED:
        return bool(old.bit_width < new.bit_width)
    if old in _UNSIGNED and new in (*_UNSIGNED, *_SIGNED):
        return bool(old.bit_width < new.bit_width)
    digits = dict(_FLOATS).get(new)
    if digits is not None and pt.is_integer(old):
        return bool(old.bit_width - (old in _SIGNED) <= digits)
    if digits is not None and pt.is_floating(old):
        return bool(old.bit_width < new.bit_width)
    if pt.is_decimal(old) and pt.is_decimal(new):
        more_digits = new.scale - old.scale, (new.precision - new.scale) - (old.precision - old.scale)
        return bool(min(more_digits) >= 0 and max(more_digits) > 0)
    return False


def _kept_list(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """Return the new type; of lists the table's kind of list, with the new type of items."""
    if not is_any_list(old):
        return new
    item = old.value_field.with_type(_kept_list(old.value_type, new.value_type))
    return with_child_fields(old, [item])


def _nullable(field_: pa.Field) -> pa.Field:
    """Return a field that allows nulls, as rows without it have them, with children that allow them in structs."""
    if pt.is_struct(field_.type):
        children = [_nullable(child) for child in child_fields(field_.type)]
        field_ = field_.with_type(with_child_fields(field_.type, children))
    return field_.with_nullable(True)

"""A merge as the user requests it, and the same merge checked against a version and a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

import pyarrow as pa

from lance_ops.blobs import schema_to_write
from lance_ops.changing.merge_insert.key_types import check_key_values
from lance_ops.changing.merge_insert.missing_struct_fields import check_structs_in_lists, lacks_struct_fields
from lance_ops.core.arrow import safe_to_take
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import Column, Predicate, parse_filter
from lance_ops.core.predicate.binding import Name, resolve
from lance_ops.core.records import dataclass
from lance_ops.core.schema import split_path
from lance_ops.reading import UserFilter, bind_filter
from lance_ops.snapshot import Snapshot
from lance_ops.writing import WriteTargets, choose_bases, conform_present_columns

__all__ = [
    "SOURCE",
    "TARGET",
    "BoundMerge",
    "MergeRequest",
    "WhenMatched",
    "bind_merge",
    "key_column",
    "key_columns",
    "merge_keys",
    "primary_key",
    "write_targets",
]

SOURCE = "source"
TARGET = "target"


class WhenMatched(Enum):
    """What happens to a row of the target that matches a source row."""

    KEEP = "keep"
    UPDATE = "update"
    DELETE = "delete"
    FAIL = "fail"


@dataclass(frozen=True)
class MergeRequest:
    """A merge as the user requests it.

    `update_condition` restricts updates; it reads columns `source.…` and `target.…`. `deletes_unmatched` deletes target
    rows that match no source row, and if there is a `delete_condition` only those for which it is true.
    """

    on: tuple[str, ...]
    when_matched: WhenMatched = WhenMatched.KEEP
    update_condition: str | None = None
    inserts: bool = False
    deletes_unmatched: bool = False
    delete_condition: UserFilter | None = None
    use_index: bool = True
    in_place: bool = False
    """Write new files of the source's columns for the existing fragments, instead of moving rows to new fragments."""
    repeated_keys: bool = False
    """Let source rows repeat a key that a row of the target has. Only for a merge that deletes every matched row."""
    file_version: str | None = None
    target_bases: tuple[str, ...] | None = None
    """Where new fragments go. Column files of existing fragments and deletion files stay beneath the root."""
    target_all_bases: bool | None = None

    @property
    def replaces_rows(self) -> bool:
        """Whether rows of the source replace rows of the target."""
        return self.when_matched is WhenMatched.UPDATE


@dataclass(frozen=True)
class BoundMerge:
    """A merge whose columns are resolved. `source` has the table's types and column order; columns may be missing.

    `partial_structs` maps each struct column that lacks some of the table's fields to the type that the source has.
    """

    request: MergeRequest
    source: pa.Table
    partial_structs: Mapping[str, pa.DataType]
    keys: tuple[Column, ...]
    update_condition: Predicate | None
    delete_condition: Predicate | None

    def source_keys(self) -> list[pa.Array]:
        """Return the source's key columns."""
        return key_columns(self.source, self.keys)


def bind_merge(snapshot: Snapshot, request: MergeRequest, source: pa.Table) -> BoundMerge:
    """Check a merge against a version and a source.

    Raises `InvalidInput` for a merge that does nothing or a key that does not exist, `SchemaMismatch` naming a source
    column that does not fit, a key that the cast to the table's type changes or, if matched rows are updated, a field
    that a struct in a list or a map lacks, and `InvalidFilter` for a condition that does not fit.
    """
    on = merge_keys(snapshot, request)
    schema = snapshot.schema.to_arrow_storage()
    conformed = safe_to_take(conform_present_columns(source, schema_to_write(snapshot.schema)))
    for path in on:
        if path not in conformed.schema.names and split_path(path)[0] not in conformed.schema.names:
            raise InvalidInput(f"the source has no column {path!r}, which the merge matches on")
    keys = tuple(key_column(schema, path) for path in on)
    for path, key in zip(on, keys, strict=True):
        given = key_column(source.schema, path)
        check_key_values(path, *key_columns(source, [given]), *key_columns(conformed, [key]))
    if request.replaces_rows:
        check_structs_in_lists(source.schema, snapshot.schema.fields)
    if request.in_place:
        _check_in_place(snapshot, request, conformed, on)
    update_condition = None
    if request.update_condition is not None:
        update_condition = parse_filter(request.update_condition, _both_sides(conformed.schema, schema))
    delete_condition = None if request.delete_condition is None else bind_filter(snapshot, request.delete_condition)
    partial = _partial_structs(source.schema, conformed.schema)
    return BoundMerge(request, conformed, partial, keys, update_condition, delete_condition)


def merge_keys(snapshot: Snapshot, request: MergeRequest) -> tuple[str, ...]:
    """Return the columns that a merge matches on, in the table's spelling; nothing of the source is looked at.

    Raises `InvalidInput` for a merge that does nothing or a key that the table does not have.
    """
    if request.when_matched is WhenMatched.KEEP and not (request.inserts or request.deletes_unmatched):
        raise InvalidInput("the merge changes nothing: say when_matched_…, when_not_matched_… or both")
    on = request.on or primary_key(snapshot)
    if not on:
        raise InvalidInput("a merge needs the columns to match on: name them, or declare a primary key in the schema")
    return tuple(_spelled_as_in_table(snapshot, path) for path in on)


def write_targets(snapshot: Snapshot, request: MergeRequest) -> WriteTargets:
    """Return where new fragments go; raise `InvalidInput` for an empty list of bases, and as `choose_bases` does."""
    if request.target_bases == ():
        raise InvalidInput("target_bases is empty: leave it out to write beneath the table's root")
    declared = snapshot.manifest.base_paths
    chosen = choose_bases(declared, request.target_bases, request.target_all_bases, root_uri=snapshot.uri)
    return WriteTargets(snapshot.file_locations, chosen)


def primary_key(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the paths of the fields that the schema declares as the primary key."""
    return tuple(snapshot.schema.path_of(node.id) for node in snapshot.schema.walk() if node.unenforced_primary_key)


def key_columns(rows: pa.Table, keys: Sequence[Column]) -> list[pa.Array]:
    """Return the values of each key column as one array."""
    batches = rows.to_batches()
    return [_one_array([key.evaluate(batch) for batch in batches], key.type) for key in keys]


def _one_array(parts: list[pa.Array], arrow_type: pa.DataType) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts) if parts else pa.array([], arrow_type)


def _check_in_place(snapshot: Snapshot, request: MergeRequest, source: pa.Table, on: Sequence[str]) -> None:
    """Raise unless the merge only updates some, not all, columns of matched rows."""
    blob = next(
        (node for node in snapshot.schema.fields if node.holds_blobs_v2 and node.name in source.schema.names), None
    )
    if blob is not None:
        raise UnsupportedFeature("rewriting blobs in place", f"column {blob.name!r}")
    updated = set(source.schema.names) - {split_path(path)[0] for path in on} - set(on)
    if request.when_matched is not WhenMatched.UPDATE or request.inserts or request.deletes_unmatched:
        raise InvalidInput("columns are rewritten in place by a merge that updates matched rows and does nothing else")
    if not updated or set(source.schema.names) == set(snapshot.schema.names):
        raise InvalidInput("columns are rewritten in place from a source of the key and some, not all, other columns")


def _partial_structs(given: pa.Schema, conformed: pa.Schema) -> dict[str, pa.DataType]:
    types = {field.name: given.field(field.name).type for field in conformed}
    return {name: kind for name, kind in types.items() if lacks_struct_fields(kind, conformed.field(name).type)}


def _spelled_as_in_table(snapshot: Snapshot, path: str) -> str:
    """Return the path of a key column, whose name may differ in case if it is no path of the table as it stands."""
    names = snapshot.schema.names
    if path not in names:
        path = next((name for name in names if name.lower() == path.lower()), path)
    snapshot.schema.field(path)
    return path


def key_column(schema: pa.Schema, path: str) -> Column:
    """Return the column of a key, which may be a field of a struct; raise `InvalidInput` if there is none."""
    names = [path] if path in schema.names else split_path(path)
    return resolve(schema, [Name(name) for name in names])


def _both_sides(source: pa.Schema, target: pa.Schema) -> pa.Schema:
    """Return the schema for the update condition: one struct column for each side."""
    return pa.schema([pa.field(SOURCE, pa.struct(list(source))), pa.field(TARGET, pa.struct(list(target)))])

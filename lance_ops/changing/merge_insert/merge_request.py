"""What a merge does with rows: as a user says it, and bound to a version and a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from lance_ops.blobs import schema_to_write
from lance_ops.changing.merge_insert.missing_struct_fields import lacks_struct_fields
from lance_ops.core.arrow import safe_to_take
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import Column, Predicate, parse_filter
from lance_ops.core.predicate.binding import Name, resolve
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
    "key_columns",
    "primary_key",
    "write_targets",
]

SOURCE = "source"
TARGET = "target"


class WhenMatched(Enum):
    """What happens to a row of the target that the source has a row for."""

    KEEP = "keep"
    UPDATE = "update"
    DELETE = "delete"
    FAIL = "fail"


@dataclass(frozen=True)
class MergeRequest:
    """A merge as it was asked for. `condition` is on columns `source.…` and `target.…` and restricts updates.

    Target rows without a source row are deleted when `deletes_unmatched`, of these only where `unmatched` is true.
    """

    on: tuple[str, ...]
    when_matched: WhenMatched = WhenMatched.KEEP
    update_condition: str | None = None
    inserts: bool = False
    deletes_unmatched: bool = False
    delete_condition: UserFilter | None = None
    use_index: bool = True
    in_place: bool = False
    """Write the source's columns anew beside the others, where rows stand, instead of moving rows."""
    file_version: str | None = None
    target_bases: tuple[str, ...] | None = None
    """Where new fragments go; files that patch fragments, and deletion files, stay beneath the root."""
    target_all_bases: bool | None = None


@dataclass(frozen=True)
class BoundMerge:
    """A merge whose every column is known. `source` has the table's types and order, and maybe not all its columns.

    `structs` are those of the source's columns that came without some of the table's fields, as they came.
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

    Raises `InvalidInput` for a merge that does nothing or a key that is not there, `SchemaMismatch` naming a column
    of the source that does not fit, `InvalidFilter` for a condition that does not.
    """
    if request.when_matched is WhenMatched.KEEP and not (request.inserts or request.deletes_unmatched):
        raise InvalidInput("the merge changes nothing: say when_matched_…, when_not_matched_… or both")
    on = request.on or primary_key(snapshot)
    if not on:
        raise InvalidInput("a merge needs the columns to match on: name them, or declare a primary key in the schema")
    schema = snapshot.schema.to_arrow_storage()
    fitted = safe_to_take(conform_present_columns(source, schema_to_write(snapshot.schema)))
    for path in on:
        snapshot.schema.field(path)
        if split_path(path)[0] not in fitted.schema.names and path not in fitted.schema.names:
            raise InvalidInput(f"the source has no column {path!r}, which the merge matches on")
    keys = tuple(_key(schema, path) for path in on)
    if request.in_place:
        _check_in_place(snapshot, request, fitted, on)
    condition = None
    if request.update_condition is not None:
        condition = parse_filter(request.update_condition, _both(fitted.schema, schema))
    unmatched = None if request.delete_condition is None else bind_filter(snapshot, request.delete_condition)
    return BoundMerge(request, fitted, _structs(source.schema, fitted.schema), keys, condition, unmatched)


def write_targets(snapshot: Snapshot, request: MergeRequest) -> WriteTargets:
    """Return where new fragments go; raise `InvalidInput` as `choose_bases` does, and for an empty list of bases."""
    if request.target_bases == ():
        raise InvalidInput("target_bases is empty: leave it out to write beneath the table's root")
    declared = snapshot.manifest.base_paths
    chosen = choose_bases(declared, request.target_bases, request.target_all_bases, root_uri=snapshot.uri)
    return WriteTargets(snapshot.file_locations, chosen)


def primary_key(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the paths of the fields that are declared to be the table's primary key."""
    return tuple(snapshot.schema.path_of(node.id) for node in snapshot.schema.walk() if node.unenforced_primary_key)


def key_columns(rows: pa.Table, keys: Sequence[Column]) -> list[pa.Array]:
    """Return the values of each key column, in one piece."""
    batches = rows.to_batches()
    return [_one_piece([key.evaluate(batch) for batch in batches], key.type) for key in keys]


def _one_piece(parts: list[pa.Array], arrow_type: pa.DataType) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts) if parts else pa.array([], arrow_type)


def _check_in_place(snapshot: Snapshot, request: MergeRequest, source: pa.Table, on: Sequence[str]) -> None:
    """Refuse a merge that does more than to give some columns of matched rows new values."""
    blob = next(
        (node for node in snapshot.schema.fields if node.holds_blobs_v2 and node.name in source.schema.names), None
    )
    if blob is not None:
        raise UnsupportedFeature("rewriting blobs in place", f"column {blob.name!r}")
    beside = set(source.schema.names) - {split_path(path)[0] for path in on} - set(on)
    if request.when_matched is not WhenMatched.UPDATE or request.inserts or request.deletes_unmatched:
        raise InvalidInput("columns are rewritten in place by a merge that updates matched rows and does nothing else")
    if not beside or set(source.schema.names) == set(snapshot.schema.names):
        raise InvalidInput("columns are rewritten in place from a source of the key and some, not all, other columns")


def _structs(given: pa.Schema, fitted: pa.Schema) -> dict[str, pa.DataType]:
    types = {field.name: given.field(field.name).type for field in fitted}
    return {name: kind for name, kind in types.items() if lacks_struct_fields(kind, fitted.field(name).type)}


def _key(schema: pa.Schema, path: str) -> Column:
    names = [path] if path in schema.names else split_path(path)
    return resolve(schema, [Name(name) for name in names])


def _both(source: pa.Schema, target: pa.Schema) -> pa.Schema:
    """Return the schema that a condition is bound to: each side as one struct column."""
    return pa.schema([pa.field(SOURCE, pa.struct(list(source))), pa.field(TARGET, pa.struct(list(target)))])

"""Decide the columns of a result: which fields are read, in what order, and under which names.

As in the reference, a row column (such as `_rowid`) stands where the caller names it; one that a flag asks for stands
at the end. For a dotted path, a scan returns a column of that name, and a take returns the enclosing struct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops import blobs
from lance_ops.api.schemas import shown_array, shown_field
from lance_ops.changing import columns as column_changes
from lance_ops.core import predicate
from lance_ops.core.arrow import numbers_of
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.json import json_to_text, text_field
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.reading import (
    ROW_ADDRESS,
    ROW_COLUMNS,
    ROW_ID,
    ROW_OFFSET,
    SELECTABLE_ROW_COLUMNS,
    VERSION_COLUMNS,
    row_field,
)
from lance_ops.snapshot import Snapshot

__all__ = ["Columns", "Projection", "project"]

Columns: TypeAlias = Sequence[str] | Mapping[str, str] | None
"""Column names or dotted paths, or new names with the SQL expressions to compute; None means all columns."""

_ALL_BINARY = "all_binary"
_BLOB_HANDLINGS = (_ALL_BINARY, "blobs_descriptions", "all_descriptions")


@dataclass(frozen=True)
class _Output:
    """A column of the result and its source: a stored field with its path from a column that is read.

    A column with a `value` is computed by that expression instead.
    """

    field: pa.Field
    stored: pa.Field
    path: tuple[str, ...]
    value: predicate.Assignment | None = None

    @property
    def roots(self) -> Sequence[str]:
        """The columns that this column is taken from or computed from."""
        return self.path[:1] if self.value is None else self.value.value.columns()


@dataclass(frozen=True)
class Projection:
    """The fields to read, and the result's columns that are made of them."""

    read: Schema
    outputs: tuple[_Output, ...]
    snapshot: Snapshot
    blobs_as_bytes: bool = False

    @cached_property
    def row_columns(self) -> frozenset[str]:
        """The row columns that the scan must add."""
        named = {name for output in self.outputs for name in output.roots}.intersection(SELECTABLE_ROW_COLUMNS)
        return frozenset((*named, ROW_ADDRESS) if self.needs_addresses else named)

    @cached_property
    def schema(self) -> pa.Schema:
        """The result's schema, with extension types restored."""
        return pa.schema([output.field for output in self.outputs], self.read.to_arrow().metadata)

    @property
    def needs_addresses(self) -> bool:
        """Whether rows must be read with their addresses, because blobs are located through their data files."""
        return self.blobs_as_bytes and self.read.holds_blobs_v2

    @property
    def blob_columns(self) -> dict[str, Field]:
        """The result's columns of blob descriptions, each with its field."""
        schema = self.snapshot.schema
        fields = {
            output.field.name: schema.lineage(".".join(output.path))[-1]
            for output in self.outputs
            if not self.blobs_as_bytes and output.value is None and output.path[0] not in SELECTABLE_ROW_COLUMNS
        }
        return {name: field for name, field in fields.items() if field.is_blob_v1 or field.is_blob_v2}

    def with_known_positions(self) -> Projection:
        """Return the projection of a take, in which positions of rows (`_rowoffset`) allow no nulls."""
        if ROW_OFFSET not in self.row_columns:
            return self

        def known(output: _Output) -> _Output:
            strict = output.value is None and output.path == (ROW_OFFSET,)
            return replace(output, field=output.field.with_nullable(False)) if strict else output

        return replace(self, outputs=tuple(map(known, self.outputs)))

    def apply(self, table: pa.Table) -> pa.Table:
        """Return the result for rows that were read; the rows may have more columns."""
        if not self.outputs:
            return table.select([])  # remembers how many rows there are
        if self.needs_addresses:
            table = self._with_bytes(table)
        if self.returns_stored_columns and table.schema.equals(self.schema, check_metadata=True):
            return table
        columns = [_column(table, output, self.snapshot.uri) for output in self.outputs]
        return pa.Table.from_arrays(columns, schema=self.schema)

    @cached_property
    def returns_stored_columns(self) -> bool:
        """Whether each column of the result is the stored one of that name, if it is read with the result's type."""
        return all(output.value is None and output.path == (output.field.name,) for output in self.outputs)

    def cut(self, table: pa.Table) -> Iterator[pa.Table]:
        """Cut rows that were read into parts, so that the blobs of each part have a bounded number of bytes."""
        return blobs.split_by_blob_bytes(table, self.read) if self.needs_addresses else iter((table,))

    def _with_bytes(self, table: pa.Table) -> pa.Table:
        reader = blobs.BlobReader(self.snapshot)
        addresses = numbers_of(table.column(ROW_ADDRESS))
        for position, field in enumerate(self.read.fields):
            if field.holds_blobs_v2:
                column = reader.with_bytes(table.column(field.name), field, addresses)
                table = table.set_column(position, blobs.with_blobs_as(field, pa.large_binary()), column)
        return table


def project(
    snapshot: Snapshot,
    columns: Columns,
    *,
    with_row_id: bool,
    with_row_address: bool,
    with_row_versions: bool = False,
    flatten: bool = True,
    blob_handling: str | None = None,
    also: Sequence[str] = (),
) -> Projection:
    """Check the columns against the snapshot's schema. The columns in `also` are read but not returned.

    Blobs come as descriptions of their location, or as bytes if `blob_handling` is `all_binary`.

    Raises `InvalidInput` for a column that is unknown or named twice, and for a mapping whatever `bind_computed`
    raises.
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence | Mapping | None):
        raise InvalidInput(f"columns must be a list of names, or names with SQL expressions, not {columns!r}")
    if blob_handling not in (None, *_BLOB_HANDLINGS):
        raise InvalidInput(f"blob_handling {blob_handling!r} is none of {', '.join(_BLOB_HANDLINGS)}")
    as_bytes = blob_handling == _ALL_BINARY
    schema = snapshot.schema if as_bytes else snapshot.schema.described
    asked = {ROW_ID: with_row_id, ROW_ADDRESS: with_row_address, **dict.fromkeys(VERSION_COLUMNS, with_row_versions)}
    added = [name for name, wanted in asked.items() if wanted]
    if isinstance(columns, Mapping):
        columns = {name: text for name, text in columns.items() if name not in added or text != name}
        return _computed(snapshot, schema, columns, [name for name in added if name not in columns], also, as_bytes)
    if columns is None and not added and not schema.names_extensions:
        return Projection(schema, _outputs_of(schema, flatten=flatten), snapshot, as_bytes)
    names = schema.names if columns is None else list(columns)
    twice = sorted({name for name in names if names.count(name) > 1}) if columns is not None else []
    if twice:
        raise InvalidInput(f"column {twice[0]!r} is asked for twice")
    names = [name for name in names if name not in added] + added
    stored = [name for name in names if name not in SELECTABLE_ROW_COLUMNS]
    read = schema if columns is None else schema.project([*stored, *also])
    outputs = {output.field.name: output for output in (_output(read, name, flatten=flatten) for name in names)}
    return Projection(read, tuple(outputs.values()), snapshot, as_bytes)


def _computed(
    snapshot: Snapshot,
    schema: Schema,
    columns: Mapping[str, str],
    added: Sequence[str],
    also: Sequence[str],
    as_bytes: bool,
) -> Projection:
    """Bind SQL expressions. An expression that is only a column's name returns that column, of whatever type.

    Positions of rows can be returned, but not computed with.
    """
    positions = {name for name, text in columns.items() if text == ROW_OFFSET}
    computed = {name: text for name, text in columns.items() if name not in positions}
    values = column_changes.bind_computed(snapshot, computed)[1].assignments if computed else ()
    paths = [path for each in values for path in each.value.columns() if path not in ROW_COLUMNS]
    read = schema.project([*paths, *also])
    outputs = {name: _row_output(ROW_OFFSET, name) for name in positions}
    for each in values:
        if isinstance(each.value, predicate.Column):
            output = _output(read, each.value.name, flatten=True)
            outputs[each.column] = replace(output, field=output.field.with_name(each.column))
            continue
        blob = next((path for path in each.value.columns() if _is_blob(snapshot.schema, path)), None)
        if blob is not None:
            raise UnsupportedFeature(f"a value computed from the blobs of column {blob!r}", snapshot.uri)
        field = pa.field(each.column, each.arrow_type)
        outputs[each.column] = _Output(field, field, (each.column,), each)
    in_order = [*(outputs[name] for name in columns), *(_row_output(name, name) for name in added)]
    return Projection(read, tuple(in_order), snapshot, as_bytes)


def _is_blob(schema: Schema, path: str) -> bool:
    return path not in ROW_COLUMNS and any(field.is_blob_v1 or field.is_blob_v2 for field in schema.lineage(path))


def _row_output(row_column: str, name: str) -> _Output:
    return _Output(row_field(name), row_field(row_column), (row_column,))


@lru_cache(maxsize=16)
def _outputs_of(schema: Schema, *, flatten: bool) -> tuple[_Output, ...]:
    """Return the result of reading all columns of a schema that names no extension types."""
    return tuple([_output(schema, name, flatten=flatten) for name in schema.names])


def _output(read: Schema, name: str, *, flatten: bool) -> _Output:
    if name in SELECTABLE_ROW_COLUMNS:
        return _row_output(name, name)
    lineage = read.lineage(name)
    if len(lineage) == 1 or not flatten:
        root = lineage[0]
        return _Output(_shown(root), _read(root), (root.name,))
    outside = next((parent for parent in lineage[:-1] if not pt.is_struct(parent.storage_field.type)), None)
    if outside is not None:
        raise InvalidInput(f"column {name!r} names a part of {outside.name!r}, which is no struct: read it whole")
    leaf = _shown(lineage[-1])
    nullable = any(field.nullable for field in lineage)
    field = pa.field(name, leaf.type, nullable, leaf.metadata)
    return _Output(field, _read(lineage[-1]), tuple(parent.name for parent in lineage))


def _read(field: Field) -> pa.Field:
    """Return the field's type after its blobs have been read as bytes."""
    return blobs.with_blobs_as(field, pa.large_binary()) if field.holds_blobs_v2 else field.storage_field


def _shown(field: Field) -> pa.Field:
    return text_field(_read(field)) if field.holds_blobs_v2 else shown_field(field)


def _column(table: pa.Table, output: _Output, uri: str) -> pa.ChunkedArray:
    wanted = output.field.type
    if output.value is not None:
        return pa.chunked_array([output.value.evaluate(batch) for batch in table.to_batches()], wanted)
    column = table.column(output.path[0])
    if column.type == wanted:
        return column
    chunks = []
    for chunk in column.chunks:
        for name in output.path[1:]:
            chunk = pc.struct_field(chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk, name)
        chunks.append(chunk)
    shown = json_to_text(pa.chunked_array(chunks, output.stored.type), output.stored, uri)
    return pa.chunked_array([shown_array(chunk, wanted) for chunk in shown.chunks], wanted)

"""The columns of an answer: which, in what order, under which names.

As in the reference, the row columns (`_rowid` and the like) stand where they are named, else at the end; a scan answers
a dotted path with a column of that very name, a take with the struct around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.json_columns import json_to_text
from lance_ops.core.schema import Field, Schema
from lance_ops.snapshot.row_columns import ROW_ADDRESS, ROW_COLUMNS, ROW_ID, VERSION_COLUMNS, row_field
from lance_ops.snapshot.snapshot import Snapshot

__all__ = ["Columns", "Projection", "project"]

Columns: TypeAlias = Sequence[str] | Mapping[str, str] | None
"""Column names or dotted paths; None means all."""


@dataclass(frozen=True)
class _Output:
    """A column of the answer, and the field it is made of: as it is stored, and its path from a column that is read."""

    field: pa.Field
    stored: pa.Field
    path: tuple[str, ...]


@dataclass(frozen=True)
class Projection:
    """The fields to read, and the answer's columns made of them."""

    read: Schema
    outputs: tuple[_Output, ...]
    uri: str

    def has(self, name: str) -> bool:
        """Whether the answer has a column of that name."""
        return any(output.field.name == name for output in self.outputs)

    @property
    def schema(self) -> pa.Schema:
        """The answer's schema, extension types restored."""
        return pa.schema([output.field for output in self.outputs], self.read.to_arrow().metadata)

    def apply(self, table: pa.Table) -> pa.Table:
        """Make the answer out of rows that were read, which may have more columns."""
        if not self.outputs:
            return table.select([])  # remembers how many rows there are
        columns = [_column(table.column(output.path[0]), output, self.uri) for output in self.outputs]
        return pa.Table.from_arrays(columns, schema=self.schema)


def project(
    snapshot: Snapshot,
    columns: Columns,
    *,
    with_row_id: bool,
    with_row_address: bool,
    with_row_versions: bool = False,
    flatten: bool = True,
) -> Projection:
    """Check the columns against the snapshot's schema.

    Raises `InvalidInput` for one that is unknown or named twice, `UnsupportedFeature` for SQL expressions.
    """
    if isinstance(columns, Mapping):
        raise UnsupportedFeature("columns as a mapping of names to SQL expressions", snapshot.uri)
    if isinstance(columns, str) or not isinstance(columns, Sequence | None):
        raise InvalidInput(f"columns must be a list of names, not {columns!r}")
    names = snapshot.schema.names if columns is None else list(columns)
    twice = sorted({name for name in names if names.count(name) > 1}) if columns is not None else []
    if twice:
        raise InvalidInput(f"column {twice[0]!r} is asked for twice")
    asked = {ROW_ID: with_row_id, ROW_ADDRESS: with_row_address, **dict.fromkeys(VERSION_COLUMNS, with_row_versions)}
    names = names + [name for name, wanted in asked.items() if wanted and name not in names]
    stored = [name for name in names if name not in ROW_COLUMNS]
    read = snapshot.schema if columns is None else snapshot.schema.project(stored)
    outputs = {output.field.name: output for output in (_output(read, name, flatten=flatten) for name in names)}
    return Projection(read, tuple(outputs.values()), snapshot.uri)


def _output(read: Schema, name: str, *, flatten: bool) -> _Output:
    if name in ROW_COLUMNS:
        return _Output(row_field(name), row_field(name), (name,))
    lineage: list[Field] = [read.field(name)]
    while (parent := read.by_id(lineage[0].parent_id)) is not None:
        lineage.insert(0, parent)
    if len(lineage) == 1 or not flatten:
        root = lineage[0]
        return _Output(root.to_arrow(), root.storage_field, (root.name,))
    leaf = lineage[-1].to_arrow()
    nullable = any(field.nullable for field in lineage)
    field = pa.field(name, leaf.type, nullable, leaf.metadata)
    return _Output(field, lineage[-1].storage_field, tuple(parent.name for parent in lineage))


def _column(column: pa.ChunkedArray, output: _Output, uri: str) -> pa.ChunkedArray:
    wanted = output.field.type
    if column.type == wanted:
        return column
    chunks = []
    for chunk in column.chunks:
        for name in output.path[1:]:
            chunk = pc.struct_field(chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk, name)
        chunks.append(chunk)
    shown = json_to_text(pa.chunked_array(chunks, output.stored.type), output.stored, uri)
    return pa.chunked_array([_restored(chunk, wanted) for chunk in shown.chunks], wanted)


def _restored(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type == wanted:
        return array
    is_extension = isinstance(wanted, pa.BaseExtensionType)
    return wanted.wrap_array(array) if is_extension and array.type == wanted.storage_type else array.cast(wanted)

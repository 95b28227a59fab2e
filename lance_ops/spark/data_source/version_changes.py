"""The rows that were inserted, updated and deleted from one version to another, in the form that Spark sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from lance_ops.api import LanceDataset
from lance_ops.core.arrow import scalar
from lance_ops.core.errors import InvalidInput
from lance_ops.core.json import table_to_text, text_schema
from lance_ops.reading import ROW_ID, VERSION_COLUMNS
from lance_ops.snapshot import Snapshot
from lance_ops.spark.translation import fit, schema_for_spark

__all__ = ["change_schema", "read_changes"]

_CHANGE_TYPE = "_change_type"


def change_schema(snapshot: Snapshot, constants: Iterable[str] = ()) -> pa.Schema:
    """Return the columns of a change: `_change_type`, `constants`, the row's id and versions, and those of the table.

    All are nullable: of a deleted row nothing but the id is known. Raises `InvalidInput` if the table itself has a
    column of one of the first two kinds, as a table may have that a stream of changes was written to.
    """
    of_changes = [pa.field(_CHANGE_TYPE, pa.string()), *(pa.field(name, pa.int64()) for name in constants)]
    _check_names(snapshot, [field.name for field in of_changes])
    stored = schema_for_spark(text_schema(snapshot.schema.to_arrow_storage()))
    of_rows = [pa.field(name, pa.int64()) for name in (ROW_ID, *VERSION_COLUMNS)]
    return pa.schema([*of_changes, *of_rows, *(field.with_nullable(True) for field in stored)])


def read_changes(
    begin_version: int, end: Snapshot, shape: pa.Schema, constants: Mapping[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the changes after `begin_version` (0 is the empty table) in the columns of `shape`.

    `constants` has columns of one value. A column that the version does not have is null. Raises `InvalidInput` for a
    table without stable row ids or that `change_schema` refuses, and `VersionNotFound` if clean-up has removed the
    earlier version.
    """
    values = dict(constants or {})
    _check_names(end, [_CHANGE_TYPE, *values])
    delta = LanceDataset.of(end, None).delta(begin_version)
    for kind, reader in (
        ("insert", delta.get_inserted_rows()),
        ("update", delta.get_updated_rows()),
        ("delete", delta.get_deleted_row_ids()),
    ):
        for batch in reader:
            for rows in table_to_text(pa.Table.from_batches([batch]), end.uri).to_batches():
                yield _in_shape(rows, shape, {_CHANGE_TYPE: kind, **values})


def _check_names(snapshot: Snapshot, taken: Iterable[str]) -> None:
    for name in snapshot.schema.names:
        if name.lower() in taken:  # Spark does not tell names apart by their case
            raise InvalidInput(
                f"{snapshot.uri}: column {name!r} has the name of a column of changes: rename it to read the changes "
                "of this table"
            )


def _in_shape(rows: pa.RecordBatch, shape: pa.Schema, constants: Mapping[str, str | int]) -> pa.RecordBatch:
    for field in shape:
        if field.name in constants:
            column = pa.repeat(scalar(constants[field.name], field.type), len(rows))
        elif field.name not in rows.schema.names:
            column = pa.nulls(len(rows), field.type)
        else:
            continue
        rows = rows.append_column(field, column)
    return fit(rows, shape)

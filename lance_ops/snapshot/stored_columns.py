"""Which columns of a data file hold which fields of the table, and whether the two agree on the type of the values.

A manifest maps field ids to the columns of a file, because the file's own schema may number its fields differently.
The type of a column is stated twice, in both schemas. Values read as another type would be wrong without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import is_text_or_bytes
from lance_ops.core.errors import CorruptFile, LanceOpsError
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.table import TOMBSTONED_FIELD, DataFile

if TYPE_CHECKING:
    from lance_ops.file import DescribedFile

__all__ = ["check_types", "live_columns", "stored_ids_by_table_id"]


def stored_ids_by_table_id(file: DataFile, reader: DescribedFile) -> Mapping[int, int]:
    """Return the file's own field ids by the table's field ids; empty if all are equal.

    Raises `CorruptFile` for columns that the file does not have, or that hold two fields.
    """
    if not file.column_indices:
        return _stored_ids_of_v0_1(file, reader) if reader.version is FileVersion.V0_1 else {}
    stored = reader.field_ids
    if stored == file.fields and file.column_indices == _ascending(len(stored)):
        return {}
    ids = {field_id: stored[column] for field_id, column in live_columns(file, reader)}
    return {} if all(field_id == stored_id for field_id, stored_id in ids.items()) else ids


def _stored_ids_of_v0_1(file: DataFile, reader: DescribedFile) -> Mapping[int, int]:
    """Return the ids in a 0.1 file, whose fields the manifest lists in the file's order.

    They differ where the reference has given new ids to fields that shared one.
    """
    stored = [field.id for field in reader.schema.walk()]
    if len(stored) != len(file.fields) or stored != sorted(stored) or set(file.fields) <= {*stored, TOMBSTONED_FIELD}:
        return {}
    return {table_id: own for table_id, own in zip(file.fields, stored, strict=True) if table_id != TOMBSTONED_FIELD}


def live_columns(file: DataFile, reader: DescribedFile) -> list[tuple[int, int]]:
    """Return each field of the file that is not tombstoned and has a column, with that column's index.

    Raises as `stored_ids_by_table_id` does.
    """
    num_columns = len(reader.field_ids)
    own = [column for column in file.column_indices if column >= 0]
    if len(file.fields) != len(file.column_indices) or max(own, default=0) >= num_columns or len(set(own)) < len(own):
        reason = f"the manifest has fields {list(file.fields)} in columns {list(file.column_indices)} of this file"
        raise CorruptFile(reader.path, f"{num_columns} columns", reason)
    columns = zip(file.fields, file.column_indices, strict=True)
    return [(field_id, column) for field_id, column in columns if column >= 0 and field_id != TOMBSTONED_FIELD]


def check_types(reader: DescribedFile, wanted: Schema) -> None:
    """Raise `CorruptFile` if a field of `wanted`, which has the file's field ids, has another type in the file."""
    difference = _difference(reader.schema, wanted)
    if difference is not None:
        raise CorruptFile(reader.path, "schema", difference)


@lru_cache(maxsize=256)
def _difference(stored: Schema, wanted: Schema) -> str | None:
    """Return the first field that both schemas have with different types; None if there is none."""
    for field in wanted.walk():
        found = stored.by_id(field.id)
        if found is None or found.logical_type == field.logical_type or found.children or field.children:
            continue
        try:
            agree = _hold_same_values(found.arrow_type, field.arrow_type)
        except LanceOpsError:  # an unknown type: the reader of its column refuses it
            continue
        if not agree:
            return f"column {field.name!r} is {found.logical_type} in the file and {field.logical_type} in the table"
    return None


def _hold_same_values(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a file stores values of both types alike, and the values mean the same."""
    if stored == wanted or (is_text_or_bytes(stored) and is_text_or_bytes(wanted)):
        return True
    if pt.is_timestamp(stored) and pt.is_timestamp(wanted):
        return bool(stored.unit == wanted.unit)  # the zone says how to show the instant
    if pt.is_decimal(stored) and pt.is_decimal(wanted):
        return bool(stored.bit_width == wanted.bit_width and stored.scale == wanted.scale)
    if pt.is_fixed_size_list(stored) and pt.is_fixed_size_list(wanted):
        same_size = stored.list_size == wanted.list_size
        return same_size and _hold_same_values(stored.value_type, wanted.value_type)
    if pt.is_dictionary(stored) or pt.is_dictionary(wanted):
        values = (kind.value_type if pt.is_dictionary(kind) else kind for kind in (stored, wanted))
        return _hold_same_values(*values)
    return False


@lru_cache(maxsize=64)
def _ascending(count: int) -> tuple[int, ...]:
    """Return 0 to `count` - 1: the column indices of a file that was written for its table."""
    return tuple(range(count))

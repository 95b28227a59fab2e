"""Which types the files of each version hold: what is refused here, readers of that version do not expect.

everywhere      dictionaries are of numbers, booleans, text or bytes; fixed-size lists not of binary of no bytes;
blobs not of text
before 2.2      no maps, no fixed-size lists of structs, no `lance.blob.v2`, no fixed-size binary of no bytes
before 2.1      no fixed-size lists of text or bytes
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.blobs import BLOB_KEY, BLOB_V2
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.arrays import is_variable

__all__ = ["check_types"]


def check_types(schema: Schema, version: FileVersion) -> None:
    """Raise `UnsupportedFeature` naming the first column that files of the version do not hold."""
    for field in schema.walk():
        refused = _refused(field, version)
        if refused is not None:
            raise UnsupportedFeature(f"{refused} in file version {version.value}", f"column {field.name!r}")


def _refused(field: Field, version: FileVersion) -> str | None:
    arrow_type = field.arrow_type
    if pt.is_dictionary(arrow_type) and not _may_be_in_dictionaries(arrow_type.value_type):
        return f"a dictionary of {arrow_type.value_type}"
    if pt.is_fixed_size_list(arrow_type) and _is_empty_binary(_items(arrow_type)):
        return str(arrow_type)
    is_text = pt.is_string(arrow_type) or pt.is_large_string(arrow_type)
    if is_text and field.metadata.get(BLOB_KEY, "").lower() == "true":
        return f"{arrow_type} as blobs (use large_binary)"
    if version >= FileVersion.V2_2:
        return None
    if field.is_blob_v2:
        return BLOB_V2
    if field.logical_type == "map":
        return "a map"
    if _is_empty_binary(arrow_type):
        return str(arrow_type)
    if pt.is_fixed_size_list(arrow_type):
        if field.children:
            return "a fixed-size list of structs"
        if version < FileVersion.V2_1 and is_variable(_items(arrow_type)):
            return str(arrow_type)
    return None


def _may_be_in_dictionaries(value_type: pa.DataType) -> bool:
    return bool(
        pt.is_integer(value_type)
        or pt.is_floating(value_type)
        or pt.is_boolean(value_type)
        or pt.is_null(value_type)
        or is_variable(value_type)
    )


def _is_empty_binary(arrow_type: pa.DataType) -> bool:
    return bool(pt.is_fixed_size_binary(arrow_type) and not arrow_type.byte_width)


def _items(arrow_type: pa.DataType) -> pa.DataType:
    while pt.is_fixed_size_list(arrow_type):
        arrow_type = arrow_type.value_type
    return arrow_type

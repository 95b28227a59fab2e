"""Refuse schemas with types that the files of a version do not support, since its readers do not expect them.

all versions    dictionaries only of numbers, booleans, text or bytes; no fixed-size lists of text, of bytes or of
                empty fixed-size binary; no blobs of text
2.1 and later   no structs without fields in lists, or before other fields of the same column; no packed structs of
                nulls or dictionaries
before 2.2      no maps, no fixed-size lists of structs, no `lance.blob.v2`, no empty fixed-size binary
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import is_text, is_text_or_bytes
from lance_ops.core.blob_types import BLOB_KEY, BLOB_V2
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Field, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file.leaves import Leaf, is_packed, leaves_of_field

__all__ = ["check_types"]


def check_types(schema: Schema, version: FileVersion) -> None:
    """Raise `UnsupportedFeature` for the first field that the version does not support, and name it."""
    if version is FileVersion.V0_1:
        _check(schema, version)  # no cache: the schema holds dictionary values, which it would keep alive
    else:
        _check_once(schema, version)


def _check(schema: Schema, version: FileVersion) -> None:
    for field in schema.walk():
        feature = _unsupported_type(field, version)
        if feature is not None:
            raise _unsupported(feature, version, field)
    if version >= FileVersion.V2_1:
        for root in schema.fields:
            _check_fieldless(root, version)


_check_once = lru_cache(maxsize=64)(_check)
"""The cached check: files of a table share a schema, which is checked once."""


def _check_fieldless(root: Field, version: FileVersion) -> None:
    """Refuse structs without fields in lists, which pages cannot store, and before fields that readers would miss."""
    fieldless: Leaf | None = None
    for leaf in leaves_of_field(root):
        if leaf.is_fieldless:
            fieldless = leaf
            if any(step.is_list or step.dimension for step in leaf.steps):
                raise _unsupported("a struct without fields in a list", version, leaf.field)
        elif fieldless is not None:
            feature = (
                f"a struct without fields before {leaf.field.name!r}, which readers would miss (move it to the end),"
            )
            raise _unsupported(feature, version, fieldless.field)


def _unsupported(feature: str, version: FileVersion, field: Field) -> UnsupportedFeature:
    return UnsupportedFeature(f"{feature} in file version {version.value}", f"column {field.name!r}")


def _unsupported_type(field: Field, version: FileVersion) -> str | None:
    arrow_type = field.arrow_type
    if pt.is_dictionary(arrow_type) and not _can_be_dictionary_value(arrow_type.value_type):
        return f"a dictionary of {arrow_type.value_type}"
    if pt.is_fixed_size_list(arrow_type) and _has_no_fixed_width(_items(arrow_type)):
        return str(arrow_type)
    if is_text(arrow_type) and field.metadata.get(BLOB_KEY, "").lower() == "true":
        return f"{arrow_type} as blobs (use large_binary)"
    if version >= FileVersion.V2_1 and is_packed(field):
        unsupported = next(
            (child.type for child in arrow_type if pt.is_null(child.type) or pt.is_dictionary(child.type)), None
        )
        if unsupported is not None:
            return f"{unsupported} in a packed struct"
    if version >= FileVersion.V2_2:
        return None
    if field.is_blob_v2:
        return BLOB_V2
    if field.logical_type == "map":
        return "a map"
    if _is_empty_binary(arrow_type):
        return str(arrow_type)
    if pt.is_fixed_size_list(arrow_type) and field.children:
        return "a fixed-size list of structs"
    return None


def _can_be_dictionary_value(value_type: pa.DataType) -> bool:
    return bool(
        pt.is_integer(value_type)
        or pt.is_floating(value_type)
        or pt.is_boolean(value_type)
        or pt.is_null(value_type)
        or is_text_or_bytes(value_type)
    )


def _is_empty_binary(arrow_type: pa.DataType) -> bool:
    return bool(pt.is_fixed_size_binary(arrow_type) and not arrow_type.byte_width)


def _has_no_fixed_width(arrow_type: pa.DataType) -> bool:
    return _is_empty_binary(arrow_type) or is_text_or_bytes(arrow_type)


def _items(arrow_type: pa.DataType) -> pa.DataType:
    while pt.is_fixed_size_list(arrow_type):
        arrow_type = arrow_type.value_type
    return arrow_type

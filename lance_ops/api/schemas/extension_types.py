"""Show columns of bfloat16 and of images as extension types, which Arrow itself does not restore.

Arrow restores an extension type only if the process has registered it. These types are not registered, because the
reference registers its own of the same names and could then not be imported. In a process that has imported the
reference, Arrow restores the types of the reference.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from lance_ops.api import images
from lance_ops.core.arrow import EXTENSION_METADATA, EXTENSION_NAME, child_fields, with_child_fields
from lance_ops.core.errors import LanceOpsError
from lance_ops.core.frameworks import BFloat16Type
from lance_ops.core.schema import Field, Schema

__all__ = ["shown_array", "shown_field", "shown_schema"]

_NAME, _METADATA = EXTENSION_NAME.encode(), EXTENSION_METADATA.encode()


def shown_schema(schema: Schema) -> pa.Schema:
    """Return a table's schema as users see it: `Schema.to_arrow`, with bfloat16 and images as extension types."""
    shown = schema.to_arrow()
    if not schema.names_extensions:
        return shown
    return pa.schema([_typed(*pair) for pair in zip(shown, schema.fields, strict=True)], shown.metadata)


def shown_field(field: Field) -> pa.Field:
    """Return a field of `shown_schema`."""
    return _typed(field.to_arrow(), field) if field.names_extensions else field.to_arrow()


def shown_array(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return an array with the type that users see, given it or its storage type."""
    if array.type == wanted:
        return array
    is_extension = isinstance(wanted, pa.BaseExtensionType)
    return wanted.wrap_array(array) if is_extension and array.type == wanted.storage_type else array.cast(wanted)


def _typed(shown: pa.Field, field: Field | None) -> pa.Field:
    """Return an Arrow field with the types of this library. `field` is None for items of a list that is one field."""
    if shown.metadata is not None and shown.metadata.get(_NAME) in _types():
        return _restored(shown)
    arrow_type = shown.type
    if isinstance(arrow_type, pa.FixedShapeTensorType):
        is_bfloat16 = field is not None and BFloat16Type().extension_name in field.logical_type
        if not (is_bfloat16 and arrow_type.value_type == BFloat16Type().storage_type):
            return shown
        return shown.with_type(
            pa.fixed_shape_tensor(BFloat16Type(), arrow_type.shape, arrow_type.dim_names, arrow_type.permutation)
        )
    children = child_fields(arrow_type)
    below = field.children if field is not None and len(field.children) == len(children) else [None] * len(children)
    typed = [_typed(*pair) for pair in zip(children, below, strict=True)]
    changed = any(new.type != old.type for new, old in zip(typed, children, strict=True))
    return shown.with_type(with_child_fields(arrow_type, typed)) if changed else shown


def _restored(shown: pa.Field) -> pa.Field:
    """Return a field with the type that its metadata names, or as it is if its values have another storage type."""
    metadata = dict(shown.metadata)
    kind = _types()[metadata.pop(_NAME)]
    try:
        made = kind.__arrow_ext_deserialize__(shown.type, metadata.pop(_METADATA, b""))
    except (LanceOpsError, pa.ArrowException, LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return shown  # a table may claim anything
    if made.storage_type != shown.type:
        return shown
    return pa.field(shown.name, made, shown.nullable, metadata or None)


@cache
def _types() -> dict[bytes, type[pa.ExtensionType]]:
    return {
        b"lance.bfloat16": BFloat16Type,
        b"lance.arrow.image_uri": images.ImageURIType,
        b"lance.arrow.encoded_image": images.EncodedImageType,
        b"lance.arrow.fixed_shape_image_tensor": images.FixedShapeImageTensorType,
    }

"""The reference's `lance.arrow`: numbers of the type bfloat16, and arrays of images.

A process may register only one type of a name with Arrow, and importing the reference registers its own. Therefore this
module registers none. Datasets show columns with these types without it. To read them from IPC or Parquet, or with a
`LanceFileReader`, a process without the reference calls `pyarrow.register_extension_type(BFloat16Type())` once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.api import (
    EncodedImageArray,
    EncodedImageScalar,
    EncodedImageType,
    FixedShapeImageTensorArray,
    FixedShapeImageTensorScalar,
    FixedShapeImageTensorType,
    ImageArray,
    ImageScalar,
    ImageURIArray,
    ImageURIScalar,
    ImageURIType,
)
from lance_ops.core.frameworks import (
    BFloat16,
    BFloat16Array,
    BFloat16Type,
    bfloat16_array,
    from_floats,
    to_floats,
)

if TYPE_CHECKING:
    from lance_ops.core.frameworks.pandas_bfloat16 import PandasBFloat16Array

__all__ = [
    "BFloat16",
    "BFloat16Array",
    "BFloat16Type",
    "EncodedImageArray",
    "EncodedImageScalar",
    "EncodedImageType",
    "FixedShapeImageTensorArray",
    "FixedShapeImageTensorScalar",
    "FixedShapeImageTensorType",
    "ImageArray",
    "ImageScalar",
    "ImageURIArray",
    "ImageURIScalar",
    "ImageURIType",
    "PandasBFloat16Array",
    "bfloat16_array",
    "cast",
]

_NAMES = ("bfloat16", "bf16")


if not TYPE_CHECKING:  # a checker that saw this would accept any name at all

    def __getattr__(name: str) -> Any:
        if name != "PandasBFloat16Array":
            raise AttributeError(f"module 'lance_ops.arrow' has no attribute {name!r}")
        return import_module("lance_ops.core.frameworks.pandas_bfloat16").PandasBFloat16Array


def cast(arr: pa.Array, target_type: pa.DataType | str, *args: Any, **kwargs: Any) -> pa.Array:
    """Cast an array as `pyarrow.Array.cast` does, also between floats and `bfloat16`, alone or in fixed-size lists.

    The names `bfloat16` and `bf16` mean `BFloat16Type`. The other arguments are those of pyarrow.
    """
    target = BFloat16Type() if target_type in _NAMES else target_type
    if isinstance(target, str):
        target = pa.type_for_alias(target)
    if pt.is_fixed_size_list(arr.type) and pt.is_fixed_size_list(target) and arr.type.list_size == target.list_size:
        size = arr.type.list_size
        items = cast(arr.values.slice(arr.offset * size, len(arr) * size), target.value_type, *args, **kwargs)
        return pa.FixedSizeListArray.from_arrays(items, type=target, mask=arr.is_null() if arr.null_count else None)
    if _is_bfloat16(arr.type):
        if _is_bfloat16(target):
            return arr
        return to_floats(arr).cast(target, *args, **kwargs)
    if _is_bfloat16(target):
        return from_floats(arr.cast(pa.float64()))
    return arr.cast(target, *args, **kwargs)


def _is_bfloat16(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == BFloat16Type().extension_name

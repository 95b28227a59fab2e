"""Turn Arrow columns into tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
import torch

from lance_ops.api import BlobFile
from lance_ops.core.errors import InvalidInput, UnsupportedFeature

__all__ = ["Batch", "ColumnConverter", "to_tensors"]

Batch: TypeAlias = pa.RecordBatch | Mapping[str, Any]
"""Columns by name. Columns of blobs are lists of files."""

_BFLOAT16 = "lance.bfloat16"


class ColumnConverter(Protocol):
    """Converts columns that tensors cannot hold."""

    def to_pytorch(self, col: str, array: pa.Array) -> Any:
        """Return the values of a column, or None if it has no rule for the column."""


def to_tensors(
    batch: Batch,
    *,
    uint64_as_int64: bool = True,
    hf_converter: ColumnConverter | None = None,
    use_blob_api: bool = False,
    **kwargs: Any,
) -> Any:
    """Return a tensor for each column by name, or the tensor alone if there is one column.

    A null number becomes NaN; integers with nulls become floats. As in the reference, a null list becomes the numbers
    that are stored in its place. Raises `InvalidInput` naming a column that does not hold numbers and that
    `hf_converter` does not convert, and `UnsupportedFeature` for blobs.
    """
    names = batch.schema.names if isinstance(batch, pa.RecordBatch) else list(batch)
    tensors = {name: _converted(name, batch[name], uint64_as_int64, hf_converter) for name in names}
    return next(iter(tensors.values())) if len(tensors) == 1 else tensors


def _converted(
    name: str, column: pa.Array | Sequence[Any], uint64_as_int64: bool, hf_converter: ColumnConverter | None
) -> Any:
    if isinstance(column, Sequence):
        if any(isinstance(each, BlobFile) for each in column):
            raise UnsupportedFeature("a tensor of blobs (pass to_tensor_fn)", f"column {name!r}")
        raise InvalidInput(f"column {name!r} is a {type(column).__name__} and no Arrow array")
    values = column.storage if isinstance(column.type, pa.FixedShapeTensorType) else column
    if pt.is_fixed_size_list(values.type) and _is_number(values.type.value_type):
        size = values.type.list_size
        items = values.values.slice(values.offset * size, len(values) * size)
        return _vector(items, uint64_as_int64).view(-1, size)
    if _is_number(values.type):
        return _vector(values, uint64_as_int64)
    converted = None if hf_converter is None else hf_converter.to_pytorch(name, column)
    if converted is None:
        raise InvalidInput(
            f"column {name!r} of {column.type} does not convert to a tensor: choose columns of numbers, or fixed-size "
            "lists of them, or pass to_tensor_fn"
        )
    return converted


def _is_number(kind: pa.DataType) -> bool:
    return pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind) or _is_bfloat16(kind)


def _is_bfloat16(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == _BFLOAT16


def _vector(values: pa.Array, uint64_as_int64: bool) -> torch.Tensor:
    if _is_bfloat16(values.type):
        return _bfloat16(values)
    tensor = torch.from_numpy(np.array(values.to_numpy(zero_copy_only=False)))  # a copy, since Arrow's memory is const
    return tensor.to(torch.int64) if uint64_as_int64 and tensor.dtype == torch.uint64 else tensor


def _bfloat16(values: pa.Array) -> torch.Tensor:
    stored = values.storage.cast(pa.binary(2))
    bits = np.frombuffer(stored.buffers()[1], np.int16, len(stored), 2 * stored.offset).copy()
    tensor = torch.from_numpy(bits).view(torch.bfloat16)
    if values.null_count:
        tensor[torch.from_numpy(values.is_null().to_numpy(zero_copy_only=False))] = float("nan")
    return tensor

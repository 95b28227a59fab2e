"""Count the bytes that rows take when each value is stored on its own, as the table's types may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["unshared_bytes"]


def unshared_bytes(batch: pa.RecordBatch) -> int:
    """Return about how many bytes a batch takes if no two values share bytes."""
    return sum(map(_unshared_bytes_of, batch.columns))


def _unshared_bytes_of(array: pa.Array) -> int:
    """Return about how many bytes an array's values take if no two share the items of a dictionary, a view or a run."""
    kind = array.type
    if not _shares(kind):
        return int(array.nbytes)
    if isinstance(kind, pa.BaseExtensionType):
        return _unshared_bytes_of(array.storage)
    if pa.types.is_dictionary(kind):
        return int(array.nbytes) + _repeated(array.dictionary, len(array))
    if pa.types.is_run_end_encoded(kind):
        return _repeated(array.values, len(array))
    if _is_view(kind):
        return int(_view_lengths(array).sum(dtype=np.int64))
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return int(array.nbytes) + _repeated(array.values, pc.sum(pc.list_value_length(array)).as_py() or 0)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        return _unshared_bytes_of(pa.ListArray.from_arrays(array.offsets, entries))
    if pa.types.is_struct(kind):
        return sum(map(_unshared_bytes_of, array.flatten()))
    return _unshared_bytes_of(array.flatten()) if hasattr(array, "flatten") else int(array.nbytes)


def _shares(kind: pa.DataType) -> bool:
    """Whether values of a type may stand for the same bytes many times."""
    if isinstance(kind, pa.BaseExtensionType):
        return _shares(kind.storage_type)
    if any(shares(kind) for shares in _SHARING):
        return True
    return any(_shares(kind.field(index).type) for index in range(kind.num_fields))


_SHARING = (
    pa.types.is_dictionary,
    pa.types.is_run_end_encoded,
    pa.types.is_string_view,
    pa.types.is_binary_view,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def _repeated(items: pa.Array, times: int) -> int:
    """Return at most how many bytes this many of the items take: all may be the largest one."""
    return times * _largest(items)


def _largest(items: pa.Array) -> int:
    """Return at least the bytes of the largest item."""
    kind = items.type
    if not len(items):
        return 0
    if isinstance(kind, pa.BaseExtensionType):
        return _largest(items.storage)
    if _is_view(kind):
        return int(_view_lengths(items).max(initial=0))
    if any(has_length(kind) for has_length in _WITH_LENGTH):
        return pc.max(pc.binary_length(items)).as_py() or 0
    if pa.types.is_dictionary(kind):
        return _largest(items.dictionary)
    if pa.types.is_struct(kind):
        return sum(_largest(items.field(at)) for at in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _longest(items) * (_largest(items.keys) + _largest(items.items))
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _largest(items.values)
    if any(is_list(kind) for is_list in _LISTS):
        return _longest(items) * _largest(items.values)
    if pa.types.is_run_end_encoded(kind):
        return _largest(items.values)
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:
        return int(items.nbytes) // len(items)


def _longest(lists: pa.Array) -> int:
    if pa.types.is_map(lists.type):
        return int(np.diff(lists.offsets.to_numpy()).max(initial=0))
    return pc.max(pc.list_value_length(lists)).as_py() or 0


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _view_lengths(views: pa.Array) -> NDArray[np.int32]:
    """Return the lengths of texts or bytes that are views. A view has 16 bytes, and its length is the first four."""
    lengths = np.frombuffer(views.buffers()[1], np.int32)[::4]
    return lengths[views.offset : views.offset + len(views)]


_WITH_LENGTH = (
    pa.types.is_string,
    pa.types.is_binary,
    pa.types.is_large_string,
    pa.types.is_large_binary,
)
_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)

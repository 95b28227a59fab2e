"""Count the bytes that rows have where the table's types ask for plain values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["plain_bytes"]


def plain_bytes(batch: pa.RecordBatch) -> int:
    """Return about how many bytes a batch takes if no two values share bytes."""
    return sum(map(_plain_bytes_of, batch.columns))


def _plain_bytes_of(array: pa.Array) -> int:
    """Return about how many bytes an array's values take if no two share the items of a dictionary, a view or a run."""
    kind = array.type
    if not _shares(kind):
        return int(array.nbytes)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_bytes_of(array.storage)
    if pa.types.is_dictionary(kind):
        return int(array.nbytes) + _repeated(array.dictionary, len(array))
    if pa.types.is_run_end_encoded(kind):
        return _repeated(array.values, len(array))
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        # A view has 16 bytes, and its length is the first four of them.
        views = np.frombuffer(array.buffers()[1], np.int32)[::4]
        return int(views[array.offset : array.offset + len(array)].sum(dtype=np.int64))
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return int(array.nbytes) + _repeated(array.values, pc.sum(pc.list_value_length(array)).as_py() or 0)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        return _plain_bytes_of(pa.ListArray.from_arrays(array.offsets, entries))
    if pa.types.is_struct(kind):
        return sum(map(_plain_bytes_of, array.flatten()))
    return _plain_bytes_of(array.flatten()) if hasattr(array, "flatten") else int(array.nbytes)


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
    """Return the bytes of this many items: of texts as long as the longest one, else of items of the average size."""
    if not len(items):
        return 0
    if pa.types.is_large_binary(items.type) or pa.types.is_large_string(items.type) or _is_text(items.type):
        return times * (pc.max(pc.binary_length(items)).as_py() or 0)
    return times * (_plain_bytes_of(items) // len(items))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_string(kind))

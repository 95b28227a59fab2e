"""Write the values of a blob column into a file, outside its pages.

A writer stores each value when it arrives. Only positions and sizes wait until they fill a page, so a page describes
hundreds of thousands of blobs, however large they are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_ops.core.blob_types import POSITION_AND_SIZE
from lance_ops.core.ndarrays import BoolArray
from lance_ops.encodings import VariableWidth
from lance_ops.file.arrow_values import bitmap_of, validity_of, values_of
from lance_ops.file.container import WriteBytes

__all__ = ["store_blobs"]


def store_blobs(array: pa.Array, visible: BoolArray | None, write: WriteBytes) -> pa.StructArray:
    """Write binary values with `write` and return where they are, with the nulls of `array`.

    Nulls, and values that are not `visible` (None: all are), are not written. Position and size of these and of empty
    values are 0.
    """
    values, validity = values_of(array), validity_of(array)
    assert isinstance(values, VariableWidth)
    lengths = values.lengths()
    for kept in (validity, visible):
        if kept is not None:
            lengths = np.where(kept, lengths, 0)
    present = np.flatnonzero(lengths)
    starts = values.offsets[present]
    ends = starts + lengths[present]
    view = memoryview(values.data)  # type: ignore[arg-type]  # numpy's stubs lack the buffer protocol before 3.12
    positions = np.zeros(len(array), np.uint64)
    positions[present] = [
        write(view[start:end]).position for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    columns = [pa.array(positions), pa.array(lengths.astype(np.uint64))]
    return pa.StructArray.from_buffers(POSITION_AND_SIZE, len(array), [bitmap_of(validity)], children=columns)

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.arrow.memory import new_array, new_bytes

LARGE = 1 << 20


def allocated_bytes() -> int:
    """Return how much Arrow has allocated, without what other tests left to be collected."""
    gc.collect()
    allocated: int = pa.total_allocated_bytes()
    return allocated


def test_a_large_array_counts_in_arrows_pool_until_it_is_freed() -> None:
    before = allocated_bytes()
    array = new_array(LARGE, np.int32)
    view = array[5:]
    del array
    assert pa.total_allocated_bytes() - before >= 4 * LARGE
    del view
    assert pa.total_allocated_bytes() - before < 4 * LARGE


def test_a_small_array_is_not_allocated_from_arrows_pool() -> None:
    before = allocated_bytes()
    arrays = [new_array(100, np.int64), new_bytes(100)]
    assert pa.total_allocated_bytes() == before
    assert [array.nbytes for array in arrays] == [800, 100]


@pytest.mark.parametrize("length", [0, 1, 1000, LARGE])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64])
def test_a_new_array_is_aligned_and_writable_at_every_position(length: int, dtype: type[np.integer]) -> None:
    array = new_array(length, dtype)
    assert (array.dtype, array.shape) == (np.dtype(dtype), (length,))
    array[:] = 7
    assert (array == 7).all()
    assert array.ctypes.data % array.itemsize == 0

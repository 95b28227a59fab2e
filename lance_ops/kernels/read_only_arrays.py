"""Give kernels a contiguous read-only view of an array, so that numba compiles each kernel only once."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_only"]

Array = TypeVar("Array", bound=NDArray[Any])


def read_only(array: Array) -> Array:
    """Return a contiguous read-only view. numba compiles separate code for writable, strided and read-only arrays."""
    flags = array.flags
    if flags.c_contiguous and not flags.writeable:
        return array
    view = array.view() if flags.c_contiguous else np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view  # type: ignore[return-value]  # another view of the same

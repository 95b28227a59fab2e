"""The one kind of array that kernels take as input, so that each is compiled once."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["readable"]

Scalar = TypeVar("Scalar", bound=np.generic)


def readable(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a contiguous read-only view; numba compiles anew for writable, strided and read-only arrays."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view

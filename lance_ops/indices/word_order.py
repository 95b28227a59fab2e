"""Sort words: unsigned integers of 64 bits that stand for the values of a column, in their order."""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Uint32Array, Uint64Array

__all__ = ["sort_words"]


def sort_words(words: Uint64Array) -> Uint32Array:
    """Sort the words in place, and return the index that each had; equal words keep their order.

    There are fewer than 2^32 words.
    """
    order = np.empty(len(words), np.uint32)
    kernels.sort_words(words, order)
    return order

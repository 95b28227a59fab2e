"""Sort words: unsigned integers of 64 bits that stand for the values of a column, in their order."""

from __future__ import annotations

import numpy as np

from lance_ops import kernels
from lance_ops.core.ndarrays import Uint32Array, Uint64Array

__all__ = ["order_words"]


def order_words(words: Uint64Array) -> Uint32Array:
    """Return the indices that sort the words, of which there are fewer than 2^32; equal words keep their order.

    The words are sorted, too.
    """
    order = np.empty(len(words), np.uint32)
    kernels.sort_words(words, order)
    return order

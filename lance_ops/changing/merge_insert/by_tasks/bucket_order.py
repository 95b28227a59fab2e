"""Order rows by their buckets."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Int64Array

__all__ = ["order_by_bucket"]

_MOST_OF_16_BITS = 1 << 16
"""The most buckets whose numbers fit into 16 bits, which numpy sorts stably in a seventh of the time."""


def order_by_bucket(buckets: Int64Array, num_buckets: int) -> tuple[Int64Array, Int64Array]:
    """Return the indices that order rows by their buckets, stably, and where each bucket ends in this order.

    The buckets are numbered from 0 on.
    """
    numbers = buckets.astype(np.uint16) if num_buckets <= _MOST_OF_16_BITS else buckets
    return np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(buckets, minlength=num_buckets))

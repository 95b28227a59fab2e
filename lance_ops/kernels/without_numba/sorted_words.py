"""Twin of the kernel that sorts words; see `lance_ops.kernels.words`."""

from __future__ import annotations

import numpy as np

from lance_ops.core.ndarrays import Uint32Array, Uint64Array

__all__ = ["sort_words"]


def sort_words(words: Uint64Array, order: Uint32Array) -> int:
    """Do what the kernel `sort_words` does."""
    order[:] = np.argsort(words, kind="stable")
    words[:] = words[order]
    return len(words)

"""Load the compiled kernels, whose twins would otherwise answer the first calls."""

from lance_ops import kernels
from lance_ops.kernels.without_numba import TWINS, FirstCalls

__all__ = ["load_kernels"]


def load_kernels() -> None:
    """Put the compiled kernels in their twins' places for the rest of the process."""
    for name in TWINS:
        found = getattr(kernels, name)
        if isinstance(found, FirstCalls):
            found.load()

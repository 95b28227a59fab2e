"""Load the kernels, so that these tests call them from the first call on, and not their twins."""

from lance_ops import kernels
from lance_ops.kernels.without_numba import TWINS

for name in TWINS:
    getattr(kernels, name).load()

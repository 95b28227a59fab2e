"""Load the kernels, so that these tests call them from the first call on, and not their twins."""

from lance_ops.kernels import load_kernels

load_kernels()

"""Load the kernels: as long as their twins answer, counts would depend on the calls that came before."""

from lance_ops.kernels import load_kernels

load_kernels()

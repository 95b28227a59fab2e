"""Load the kernels, so that these tests call them from the first call on, and not their twins."""

from tests.kernels.loaded import load_kernels

load_kernels()

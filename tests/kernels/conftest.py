"""Load numba, so that these tests call the compiled kernels from the first call on, and not their twins."""

import numba  # noqa: F401 # whoever loads it has spent what twins save

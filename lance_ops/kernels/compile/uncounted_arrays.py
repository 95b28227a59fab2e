"""Numba's private option `_nrt`, which compiles functions that kernels inline without reference counts.

Such a function makes no arrays, and the kernel around it holds the arrays that it reads, so nothing needs a count.
Counting is an atomic instruction, often one for each value.

Gain: writing strings of few distinct values takes 0.57 of the processor time, structs 0.67, scans 0.99 (ADR 19).
Switch off with `LANCE_OPS_DISABLE=uncounted-arrays`.
"""

from __future__ import annotations

from lance_ops.core.tricks import Trick

__all__ = ["UNCOUNTED"]

UNCOUNTED: dict[str, bool] = {"_nrt": False} if Trick.UNCOUNTED_ARRAYS.is_on() else {}
"""Options of `numba.njit` for a function that kernels inline."""

"""Import `pyarrow.dataset` without pandas.

While pyarrow imports this module, it makes two true scalars with `pyarrow.lib.scalar`, which imports pandas if it is
installed. A function that makes the same scalars from a buffer stands in its place meanwhile. It passes any other call
on, so a thread that calls it meanwhile gets the same answer.

Gain: a cold process that reads a small table takes 0.77 of the processor time, and 192 MB instead of 224 (ADR 19).
Switch off with `LANCE_OPS_DISABLE=dataset-import`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import lib

from lance_ops.core.tricks import Trick

__all__ = ["pads"]


@contextmanager
def _scalars_without_pandas() -> Iterator[None]:
    """Replace `pyarrow.lib.scalar` where that saves importing pandas."""
    if "pyarrow.dataset" in sys.modules or "pandas" in sys.modules or not Trick.DATASET_IMPORT.is_on():
        yield
        return
    plain = lib.scalar

    def scalar(value: Any, *args: Any, **kwargs: Any) -> pa.Scalar:
        if value is True and not args and not kwargs:
            return pa.Array.from_buffers(pa.bool_(), 1, [None, pa.py_buffer(b"\1")])[0]
        return plain(value, *args, **kwargs)

    lib.scalar = scalar
    try:
        yield
    finally:
        lib.scalar = plain


with _scalars_without_pandas():
    import pyarrow.dataset as pads

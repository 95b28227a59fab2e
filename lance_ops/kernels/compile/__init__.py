"""Compile kernels with numba, and keep the compiled code in a cache on disk."""

from __future__ import annotations

from lance_ops.kernels.compile.decorators import kernel, part

__all__ = ["kernel", "part"]

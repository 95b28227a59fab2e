"""Run a test with the compiled kernels of a room, and again with their twins in numpy."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest

from lance_ops.kernels.without_numba import TWINS

__all__ = ["either"]


def either(compiled: ModuleType) -> pytest.MarkDecorator:
    """Give a test both as its argument `kernels`."""
    return pytest.mark.parametrize("kernels", [compiled, SimpleNamespace(**TWINS)], ids=["compiled", "numpy"])

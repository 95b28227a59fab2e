"""Do the first 256 MiB of a process's work with numpy, so that a process which reads or writes little loads no numba.

A cold process needs some 0.3 s of processor time to import numba and to load its first kernels. The twins in numpy
lose a third of that against the kernels while they write `_FREE_BYTES`, as a scan of a million rows of four columns
does. The bound is that number of bytes, to which each call adds `_CALL_BYTES`; it is no number of calls.

To load one more kernel into a process that has numba takes some 10 ms. So a twin answers until the bytes are used up
or numba is loaded, and in any case until it has written `_KERNEL_BYTES` itself. From then on the compiled kernel
answers, and no call passes through this module any more. Beyond the 256 MiB, each twin writes at most `_KERNEL_BYTES`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["FirstCalls", "do_without_numba"]

_FREE_BYTES = 256 << 20
_CALL_BYTES = 512 << 10
"""A call counts as this many more bytes: numpy takes its time for arrays of any size. A few hundred calls are free."""

_KERNEL_BYTES = _FREE_BYTES // 40
"""The share of one kernel, whose code takes about a fortieth of the time to load that numba takes."""

_left = _FREE_BYTES


def do_without_numba(num_bytes: int) -> bool:
    """Return whether to do work that writes `num_bytes` without numba; if so, take them from the 256 MiB.

    Each call takes 512 KiB more. Returns False once numba is loaded; `FirstCalls` then still lets each twin write
    `_KERNEL_BYTES`.
    """
    global _left  # noqa: PLW0603 # threads that spend at once spend a little more
    if "numba" in sys.modules or num_bytes + _CALL_BYTES > _left:
        return False
    _left -= num_bytes + _CALL_BYTES
    return True


class FirstCalls:
    """A kernel whose numpy twin answers its first calls, as far as the bytes of this module go.

    The twin returns None for arrays that it does not handle, as malformed ones. The kernel answers for them, and says
    what is wrong.
    """

    def __init__(self, twin: Callable[..., Any], load: Callable[[], Any], weight: int = 1) -> None:
        """Stand in for what `load` returns, which also puts it in the place of this object.

        A byte that the twin writes counts for `weight` bytes.
        """
        self.load = load
        self._weight = weight
        self._twin = twin
        self._written = 0

    def __call__(self, *arguments: Any) -> Any:
        """Call the twin or the kernel."""
        arrays = (each.nbytes for each in arguments if isinstance(each, np.ndarray) and each.flags.writeable)
        num_bytes = self._weight * sum(arrays)
        self._written += num_bytes + _CALL_BYTES
        if do_without_numba(num_bytes) or self._written <= _KERNEL_BYTES:
            answer = self._twin(*arguments)
            if answer is not None:
                return answer
        return self.load()(*arguments)

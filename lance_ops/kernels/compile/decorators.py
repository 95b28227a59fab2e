"""Compile functions with numba: `kernel` for a function that Python calls, `part` for a piece of such functions.

Kernels release the GIL. With the trick `kernel-cache` (ADR 19) off, kernels go through numba's own cache. That one
hashes only the file of a kernel, not the files whose parts are compiled into it.

A fork waits until no other thread compiles or loads a kernel. Otherwise nobody in the child would release the locks of
numba and LLVM.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numba
from numba.core.compiler_lock import global_compiler_lock

from lance_ops.core.lazy_import import held_by_forks
from lance_ops.core.tricks import Trick
from lance_ops.kernels.compile.uncounted_arrays import UNCOUNTED

if Trick.KERNEL_CACHE.is_on():
    from lance_ops.kernels.compile.numba_cache import enable_cache
else:

    def enable_cache(compiled: Any) -> None:  # the other has this signature too
        """Cache compiled code with numba's own cache. Raises `RuntimeError` if no folder can be written."""
        compiled.enable_caching()


__all__ = ["kernel", "part"]

F = TypeVar("F", bound=Callable[..., Any])

_njit: Any = numba.njit  # untyped

held_by_forks(global_compiler_lock)


def kernel(function: F) -> F:
    """Compile `function` at the first call with each signature, or load it from the cache."""
    compiled = _njit(nogil=True)(function)
    with suppress(OSError, RuntimeError):  # no folder can be written: each process compiles for itself
        enable_cache(compiled)
    return compiled  # type: ignore[no-any-return]  # Any above


def part(function: F) -> F:
    """Compile a piece that kernels call in their innermost loops into each of those kernels. It makes no arrays.

    A call would pass seven words for each array, which costs more than most pieces do. References to arrays are not
    counted either; see `uncounted_arrays.py`.
    """
    return _njit(nogil=True, forceinline=True, **UNCOUNTED)(function)  # type: ignore[no-any-return]  # Any above

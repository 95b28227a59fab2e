"""How a kernel is compiled: without the GIL, and once per machine.

Compiled code is cached beside the source when that folder can be written, else in the user's cache folder, else not at
all. A folder that was filled when an image was built and is read-only since is used as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching, config
from numba.core.runtime.nrt import rtsys

from lance_ops.kernels.resident import release_compiler
from lance_ops.kernels.stamp import stamp_of

__all__ = ["kernel", "part"]

F = TypeVar("F", bound=Callable[..., Any])

# numba states types for its compiler and not for its cache
_InTree: Any = caching.InTreeCacheLocator
_Impl: Any = caching.CompileResultCacheImpl
_FunctionCache: Any = caching.FunctionCache
_njit: Any = numba.njit
_config: Any = config


class _FilledCacheLocator(_InTree):  # type: ignore[misc]  # Any above
    """The folder beside the source, when it holds compiled code and cannot be written."""

    def ensure_cache_path(self) -> None:
        folder = self.get_cache_path()
        if os.access(folder, os.W_OK) or not any(name.endswith(".nbi") for name in os.listdir(folder)):
            raise OSError(f"{folder} is writable or holds nothing compiled")


def _stamped(locator: Any) -> Any:
    def stamp(self: Any) -> tuple[str, bool]:
        # what is compiled with checks of bounds is something else
        return stamp_of(Path(self._py_file).stem), bool(_config.BOUNDSCHECK)

    return type(locator.__name__, (locator,), {"get_source_stamp": stamp})


class _CacheImpl(_Impl):  # type: ignore[misc]  # Any above
    _locator_classes = tuple(_stamped(locator) for locator in (_FilledCacheLocator, *_Impl._locator_classes))


class _Cache(_FunctionCache):  # type: ignore[misc]  # Any above
    _impl_class = _CacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # numba's own first fills its tables of all that it can compile, which takes half a second and 40 MB. Loading
        # needs of that the runtime alone, and a compiler fills them itself.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            loaded = self._load_overload(sig, target_context)
        if loaded is not None:
            release_compiler()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # a full or read-only disk costs a compilation in the next process, nothing else
            self.disable()
        release_compiler()


def kernel(function: F) -> F:
    """Compile `function` on first call for each signature, into the cache when there is a place for one."""
    compiled = _njit(nogil=True)(function)
    with suppress(OSError, RuntimeError):  # no folder can be written: compile anew in each process
        compiled._cache = _Cache(function)
    return compiled  # type: ignore[no-any-return]  # Any above


def part(function: F) -> F:
    """Compile a piece that kernels call in their innermost loops, into each of them.

    A call would pass seven words for every array and count the references to it, which costs more than most pieces do.
    A piece makes no arrays.
    """
    return _njit(nogil=True, forceinline=True, _nrt=False)(function)  # type: ignore[no-any-return]  # Any above

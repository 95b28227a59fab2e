"""Keep compiled kernels on disk, by subclasses of numba's private cache classes.

They differ from numba's own cache in three ways:

- A cached kernel is valid only for the hash of all files that it is compiled from; see `source_hash`.
- A folder that an image build has filled is used even when it is read-only. Otherwise compiled code goes beside the
  source, else to the user's cache folder, else nowhere.
- Loading a kernel does not fill the compiler's tables, and does not import the modules of numba that parts of it come
  from.

Gain: a cold process takes 0.83 of the processor time, and 123 MB instead of 189 (ADR 19). Switch off with
`LANCE_OPS_DISABLE=kernel-cache`.
"""

from __future__ import annotations

import os
from typing import Any

from numba.core import caching, config
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime.nrt import rtsys

from lance_ops.core.tricks import Trick
from lance_ops.kernels.compile.compiler_memory import release_compiler
from lance_ops.kernels.compile.source_hash import hash_sources, module_of

__all__ = ["enable_cache"]

# numba states types for its compiler and not for its cache
_InTree: Any = caching.InTreeCacheLocator
_Impl: Any = caching.CompileResultCacheImpl
_FunctionCache: Any = caching.FunctionCache
_config: Any = config
_Environment: Any = Environment
_lookup_environment: Any = lookup_environment


def enable_cache(compiled: Any) -> None:
    """Cache the code of a numba function. Raises `OSError` or `RuntimeError` if no folder can be written."""
    compiled._cache = _Cache(compiled.py_func)


class _FilledCacheLocator(_InTree):  # type: ignore[misc]  # Any above
    """The folder beside the source, when it holds compiled code and cannot be written."""

    def ensure_cache_path(self) -> None:
        folder = self.get_cache_path()
        if os.access(folder, os.W_OK) or not any(name.endswith(".nbi") for name in os.listdir(folder)):
            raise OSError(f"{folder} is writable or holds nothing compiled")


def _stamped(locator: Any) -> Any:
    def stamp(self: Any) -> tuple[str, tuple[bool, ...]]:
        settings = (bool(_config.BOUNDSCHECK), Trick.UNALIGNED_WORDS.is_on(), Trick.UNCOUNTED_ARRAYS.is_on())
        return hash_sources(module_of(self._py_file)), settings  # the settings change the code compiled from a source

    return type(locator.__name__, (locator,), {"get_source_stamp": stamp})


class _CacheImpl(_Impl):  # type: ignore[misc]  # Any above
    _locator_classes = tuple(_stamped(locator) for locator in (_FilledCacheLocator, *_Impl._locator_classes))

    def reduce(self, compiled: Any) -> tuple[Any, ...]:
        return tuple(map(_storable, super().reduce(compiled)))


class _StoredEnvironment:
    """What is stored of the environment of a compiled function: its constants, and its module's name.

    numba imports the module, for the globals that a function reads when it runs in Python. Kernels never do.
    """

    def __init__(self, environment: Any) -> None:
        self._state = environment.globals["__name__"], list(environment.consts), environment.env_name

    def __reduce__(self) -> tuple[Any, ...]:
        return _load_environment, self._state


def _storable(stored: Any) -> Any:
    if isinstance(stored, _Environment):
        return _StoredEnvironment(stored)
    if isinstance(stored, tuple) and any(isinstance(each, _Environment) for each in stored):
        return tuple(map(_storable, stored))
    return stored


def _load_environment(module: str, constants: list[Any], name: str) -> Any:
    known = _lookup_environment(name)
    if known is not None:
        return known
    loaded = _Environment({"__name__": module})
    loaded.consts[:] = constants
    loaded.env_name = name
    _Environment._memo[name] = loaded
    return loaded


class _Cache(_FunctionCache):  # type: ignore[misc]  # Any above
    _impl_class = _CacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # numba's own method first fills its tables of everything that it can compile. Loading needs only the runtime,
        # and a later compilation fills the tables itself.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            loaded = self._load_overload(sig, target_context)
        if loaded is not None:
            release_compiler()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # with a full or read-only disk, the next process compiles again
            self.disable()
        release_compiler()

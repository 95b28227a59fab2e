"""Import names of a package on first use (PEP 562), to save the time and memory of modules that are not used.

The package's `__init__.py` imports the names for type checkers alone, and maps each to its module. A module that needs
a name only when it is called imports the package and writes `package.name`; importing the name would load it at once.

Python's garbage collector pauses meanwhile, because modules allocate much and leave little garbage (ADR 25).
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["collector_paused", "freeze_objects", "import_on_first_use", "load_module"]


def import_on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return `__getattr__` for a package; `modules` maps each name to the package's module that defines it.

    A module of another package has its full name. `module:other` says that the module calls the name `other`.
    """

    def getattr_(name: str) -> Any:
        place = modules.get(name)
        if place is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, other = place.partition(":")
        full_name = module if module.startswith("lance_ops.") else f"{package}.{module}"
        value = getattr(load_module(full_name), other or name)
        setattr(sys.modules[package], name, value)  # later uses find the attribute and do not call this function
        return value

    return getattr_


def load_module(name: str) -> ModuleType:
    """Import a module, and all that it imports, while the garbage collector pauses.

    Then everything that the collector tracks counts as old, as if it had outlived collections: what a module makes
    lives as long as the process. If the caller has disabled the collector or frozen objects, both stay as they are. But
    if another thread disables the collector during the import, the import enables it: Python does not say who disabled
    it.
    """
    if name in sys.modules or not _PAUSE.begin():
        return import_module(name)
    try:
        return import_module(name)
    finally:
        _PAUSE.end()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector, as an import does, while the caller makes many objects that it keeps."""
    if not _PAUSE.begin():
        yield
        return
    try:
        yield
    finally:
        _PAUSE.end()


def freeze_objects() -> None:
    """Freeze all objects that the collector tracks (`gc.freeze`), and tell the imports to come.

    An import then counts no frozen objects, and freezes and unfreezes none, also if the caller calls `gc.unfreeze`.
    """
    _PAUSE.freeze()


class _Pause:
    """Disables the garbage collector with the first of several callers, and enables it with the last one to end."""

    def __init__(self) -> None:
        self._is_on, self._num_callers = False, 0
        self._has_seen_frozen = False
        """Whether there were frozen objects at some time. To count them, Python visits each of them."""
        self._lock = threading.RLock()  # the same thread comes again if a collection calls a finalizer that imports

    def begin(self) -> bool:
        """Count a caller, and disable the collector; return False, and do nothing, if the caller has disabled it."""
        with self._lock:
            if not self._is_on and not gc.isenabled():
                return False
            self._num_callers += 1
            self._is_on = True
            gc.disable()
            return True

    def end(self) -> None:
        """End the pause of a caller that `begin` has counted."""
        with self._lock:
            self._num_callers = max(self._num_callers - 1, 0)  # 0 if the process was forked during the pause
            if self._is_on and not self._num_callers:
                self._has_seen_frozen = self._has_seen_frozen or gc.get_freeze_count() > 0
                if not self._has_seen_frozen:
                    gc.freeze()
                    gc.unfreeze()  # puts into the oldest generation, without a look at each object
                gc.enable()
                self._is_on = False

    def freeze(self) -> None:
        """Freeze all objects, and keep that in mind."""
        with self._lock:
            self._has_seen_frozen = True
            gc.freeze()

    def reset(self) -> None:
        """End the pause in a forked child: the threads that would end it do not exist there."""
        if self._is_on:
            gc.enable()
        self._is_on, self._num_callers = False, 0
        self._lock = threading.RLock()


_PAUSE = _Pause()
os.register_at_fork(after_in_child=_PAUSE.reset)

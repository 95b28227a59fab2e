"""Import names of a package on first use (PEP 562), to save the time and memory of modules that are not used.

The package's `__init__.py` imports the names for type checkers alone, and maps each to its module. A module that needs
a name only when it is called imports the package and writes `package.name`; importing the name would load it at once.

Python's garbage collector pauses meanwhile, because modules allocate much and leave little garbage (ADR 25).

A fork waits up to 30 s for the imports that other threads have begun through this module. A thread that imports a
module holds the module's lock. In the child nobody would release it, and the child would wait forever when it needs the
module. This module imports `logging` and `concurrent.futures.thread` before it registers its own fork handlers. Python
calls the handlers before a fork in reverse order, so the fork takes the locks of these two only after the imports have
ended.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 # see above
import gc
import logging  # noqa: F401 # see above
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["collector_paused", "forks_delayed", "freeze_objects", "held_by_forks", "import_on_first_use", "load_module"]

_LONGEST_WAIT_SECONDS = 30.0
"""How long a fork waits for imports: one of them may itself wait for something that the forking thread holds."""


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
    with forks_delayed():
        if name in sys.modules or not _PAUSE.begin():
            return import_module(name)
        try:
            return import_module(name)
        finally:
            _PAUSE.end()


@contextmanager
def forks_delayed() -> Iterator[None]:
    """Let forks by other threads wait for the end of the block, which imports modules."""
    _FORKS.begin_import()
    try:
        yield
    finally:
        _FORKS.end_import()


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


def held_by_forks(lock: AbstractContextManager[object]) -> None:
    """Make every fork take a reentrant lock first and release it afterwards: so no other thread holds it in the child.

    A thread that holds the lock must not wait for the forking thread.
    """
    _FORKS.locks.append(lock)


class _Forks:
    """Holds a fork up until the other threads import nothing, and none of them holds one of `locks`."""

    def __init__(self) -> None:
        self.locks: list[AbstractContextManager[object]] = []
        self._turn = threading.RLock()
        """One thread forks at a time."""
        self._held = ExitStack()
        """What the fork under way has taken."""
        self._imports: Counter[int] = Counter()
        """The number of imports that each thread has begun and not ended."""
        self._changed = threading.Condition()  # its lock is reentrant, because a finalizer may import meanwhile

    def begin_import(self) -> None:
        """Count an import of this thread."""
        with self._changed:
            self._imports[threading.get_ident()] += 1

    def end_import(self) -> None:
        """End an import of this thread."""
        with self._changed:
            self._imports[threading.get_ident()] -= 1
            self._imports = +self._imports  # without the threads that import nothing
            self._changed.notify_all()

    def before(self) -> None:
        """Take the locks, and wait for the imports of other threads. Then none of them begins one until the fork.

        The locks come first, because a thread that holds one may begin an import.
        """
        this, deadline, num_taken = threading.get_ident(), time.monotonic() + _LONGEST_WAIT_SECONDS, 0
        with ExitStack() as held:
            held.enter_context(self._turn)
            while True:
                while num_taken < len(self.locks):
                    held.enter_context(self.locks[num_taken])
                    num_taken += 1
                self._changed.acquire()
                self._changed.wait_for(lambda: not self._imports.keys() - {this}, deadline - time.monotonic())
                if num_taken == len(self.locks):
                    break
                self._changed.release()  # one of the imports has added a lock, whose holder may be about to import
            held.callback(self._changed.release)
            self._held = held.pop_all()

    def after_in_parent(self) -> None:
        """Let the other threads go on."""
        held, self._held = self._held, ExitStack()
        held.close()

    def after_in_child(self) -> None:
        """Forget the imports of threads that do not exist here."""
        this = threading.get_ident()
        self._imports = +Counter({this: self._imports[this]})
        self.after_in_parent()


_FORKS = _Forks()
os.register_at_fork(before=_FORKS.before, after_in_parent=_FORKS.after_in_parent, after_in_child=_FORKS.after_in_child)

_PAUSE = _Pause()
os.register_at_fork(after_in_child=_PAUSE.reset)

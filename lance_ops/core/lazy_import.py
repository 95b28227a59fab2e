"""Import names of a package on first use (PEP 562), to save the time and memory of modules that are not used.

The package's `__init__.py` imports the names for type checkers alone, and maps each to its module. A module that needs
a name only when it is called imports the package and writes `package.name`; importing the name would load it at once.

Python's garbage collector pauses meanwhile, because modules allocate much and leave little garbage: a cold process that
scans a table takes 0.85 of the processor time (ADR 25).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["import_on_first_use", "load_module"]


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
    lives as long as the process. Where the caller has disabled the collector or frozen objects, both stay as they are.
    """
    if name in sys.modules or not gc.isenabled():
        return import_module(name)
    gc.disable()
    try:
        module = import_module(name)
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # puts into the oldest generation, without a look at each object
        return module
    finally:
        gc.enable()  # if two threads import at once, the first to end enables it

"""Import names of a package on first use (PEP 562), to save the time and memory of modules that are not used.

The package's `__init__.py` imports the names for type checkers alone, and maps each to its module. A module that needs
a name only when it is called imports the package and writes `package.name`; importing the name would load it at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["import_on_first_use"]


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
        value = getattr(import_module(full_name), other or name)
        setattr(sys.modules[package], name, value)  # later uses find the attribute and do not call this function
        return value

    return getattr_

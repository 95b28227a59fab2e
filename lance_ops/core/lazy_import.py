"""Import names of a package on first use (PEP 562), to save the time and memory of modules that are not used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["import_on_first_use"]


def import_on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return `__getattr__` for a package; `modules` maps each name to the package's module that defines it."""

    def getattr_(name: str) -> Any:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)  # later uses find the attribute and do not call this function
        return value

    return getattr_

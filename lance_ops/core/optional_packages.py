"""Import a package that only some installations have, at the moment when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lance_ops.core.errors import MissingPackage
from lance_ops.core.lazy_import import forks_delayed

__all__ = ["import_optional"]


def import_optional(module: str, use: str, extra: str | None) -> Any:
    """Return a module of an optional package; raise `MissingPackage` with the use that needs it and its extra."""
    try:
        with forks_delayed():
            return import_module(module)
    except ImportError as error:
        raise MissingPackage(use, module.partition(".")[0], extra, str(error)) from error

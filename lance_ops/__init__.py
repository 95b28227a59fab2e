"""Lance datasets, written, committed and kept healthy from Python.

The public names are imported on first use (PEP 562), so that a process which needs only some of them, a Dagster code
server or a Spark task, does not pay for the rest.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_ops.api import (  # type: ignore[import-not-found]
        LanceDataset,
        LanceFragment,
        dataset,
        write_dataset,
    )

__all__ = ["LanceDataset", "LanceFragment", "__version__", "dataset", "write_dataset"]

__version__ = "0.1.0"

_API = "lance_ops.api"


if not TYPE_CHECKING:  # a checker that saw these would accept any name at all

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'lance_ops' has no attribute {name!r}")
        return getattr(import_module(_API), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

    class _Package(ModuleType):
        """`dataset` is a function to the user and a room to us: importing the room must not hide the function.

        The import system binds a submodule on its package; a property takes that write and drops it. Rooms are imported
        by `from lance_ops.dataset import …`, which does not look here.
        """

        dataset = property(lambda package: __getattr__("dataset"), lambda package, room: None)

    sys.modules[__name__].__class__ = _Package

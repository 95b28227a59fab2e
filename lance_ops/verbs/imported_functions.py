"""Import the functions that a verb's options name, and tell whether their code has changed."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_ops.core.errors import InvalidInput

__all__ = ["function_token", "imported_function"]


def imported_function(path: str) -> Callable[[pa.RecordBatch], Any]:
    """Return the function that `package.module:name` names; raise `InvalidInput` if there is none."""
    module, _, name = path.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise InvalidInput(f"function {path!r} is not package.module:name")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"function {path} cannot be imported: {error}") from error
    if not callable(found):
        raise InvalidInput(f"{path} is no function")
    function: Callable[[pa.RecordBatch], Any] = found
    return function


def function_token(path: str) -> str:
    """Return the SHA-256 of the file of the function's module; "" for a module that is no Python file.

    The file may have changed since the module was imported: what the tasks import counts. Other modules do not.
    """
    file = inspect.getmodule(imported_function(path))
    source = None if file is None else inspect.getsourcefile(file)
    return "" if source is None else f"sha256 {hashlib.sha256(Path(source).read_bytes()).hexdigest()}"

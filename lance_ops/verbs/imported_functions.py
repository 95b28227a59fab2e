"""Import the functions that a verb's options name, and tell whether their code has changed."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from lance_ops.core.errors import InvalidInput

__all__ = ["function_token", "imported_function"]

_FIRST_DIGESTS: dict[str, tuple[ModuleSpec | None, str]] = {}
"""The digest of each module's file when it was first asked for after the import, which the module's spec stands for."""


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
    """Return a digest of the files of the module that `path` names and of the module that defines the function.

    The files on disk are hashed, because tasks import them; modules that these import are not hashed. The token is ""
    if no module has a Python file of its own, such as in a notebook or an archive. Raises `InvalidInput` if a file has
    changed since an earlier call in this process, because the process still runs the code that it imported. A change
    between the import and the first call is not noticed.
    """
    function: Any = imported_function(path)
    while isinstance(function, partial):
        function = function.func
    named = sys.modules[path.partition(":")[0]]
    defining = inspect.getmodule(inspect.unwrap(function)) or named
    digests = [digest for digest in map(_loaded_digest, dict.fromkeys((named, defining))) if digest]
    return " ".join(("sha256", *digests)) if digests else ""


def _loaded_digest(module: ModuleType) -> str:
    """Return the digest of a module's file. Raises `InvalidInput` if it has changed since the first call."""
    digest, spec = _file_digest(module), module.__spec__
    known = _FIRST_DIGESTS.get(module.__name__)
    if known is None or known[0] is not spec:  # a module that is loaded again has another spec
        _FIRST_DIGESTS[module.__name__] = spec, digest
    elif known[1] != digest:
        raise InvalidInput(f"the file of module {module.__name__} has changed since its import: restart this process")
    return digest


def _file_digest(module: ModuleType) -> str:
    """Return the SHA-256 of a module's Python file; "" if it has none that can be read."""
    try:
        source = inspect.getsourcefile(module)
        return "" if source is None else hashlib.sha256(Path(source).read_bytes()).hexdigest()
    except (TypeError, OSError):  # a module without a file; a file within an archive
        return ""

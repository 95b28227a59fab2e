"""Hash the files that a kernel is compiled from: its own file and every file of `lance_ops.kernels` that it imports.

Parts from imported files are compiled into a kernel. numba's own cache looks only at the kernel's file.
"""

from __future__ import annotations

import hashlib
import pkgutil
import re
from functools import cache
from pathlib import Path

__all__ = ["hash_sources", "module_of", "sources_of"]

_IMPORT = re.compile(rb"^\s*from lance_ops\.kernels\.([\w.]+) import ", re.MULTILINE)
_PACKAGE = Path(__file__).parents[1]


def module_of(file: str) -> str:
    """Return the name of the module in a source file, as in `fsst.decoding`."""
    return ".".join(Path(file).relative_to(_PACKAGE).with_suffix("").parts)


def hash_sources(module: str) -> str:
    """Return a hash of all files that the kernels of a module are compiled from.

    Raises `OSError` where a source cannot be read.
    """
    digest = hashlib.sha256()
    for source in sorted(sources_of(module)):
        digest.update(_read(source))
    return digest.hexdigest()


@cache
def sources_of(module: str) -> frozenset[str]:
    """Return the names of a module and of all modules of `lance_ops.kernels` that it imports, directly or not."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting += [imported.decode() for imported in _IMPORT.findall(_read(source))]
    return frozenset(found)


@cache
def _read(module: str) -> bytes:
    path = module.replace(".", "/")
    for name in (f"{path}.py", f"{path}/__init__.py"):
        try:
            source = pkgutil.get_data("lance_ops.kernels", name)  # from an archive too
        except OSError:  # not this one
            continue
        if source is not None:
            return source
    raise OSError(f"the source of lance_ops.kernels.{module} is not there")

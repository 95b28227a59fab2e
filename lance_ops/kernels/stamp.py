"""What a kernel is compiled from: the file that it is in, and the files here that this one imports, theirs included.

Pieces of those are compiled into it, which numba does not see: it looks at the first file alone.
"""

from __future__ import annotations

import hashlib
import pkgutil
import re
from functools import cache

__all__ = ["sources_of", "stamp_of"]

_IMPORT = re.compile(rb"^from lance_ops\.kernels\.(\w+) import ", re.MULTILINE)


def stamp_of(name: str) -> str:
    """Return a hash of all that the kernels of a module here are compiled from.

    Raises `OSError` where the sources cannot be read.
    """
    digest = hashlib.sha256()
    for source in sorted(sources_of(name)):
        digest.update(_read(source))
    return digest.hexdigest()


@cache
def sources_of(name: str) -> frozenset[str]:
    """Return a module's name, and the names of all that it imports of this package."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting += [imported.decode() for imported in _IMPORT.findall(_read(source))]
    return frozenset(found)


@cache
def _read(name: str) -> bytes:
    source = pkgutil.get_data("lance_ops.kernels", f"{name}.py")  # from an archive too
    if source is None:
        raise OSError(f"the source of lance_ops.kernels.{name} is not there")
    return source

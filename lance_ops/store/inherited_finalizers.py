"""Stop a forked child from running, at its exit, the finalizers of objects that it inherited.

This is needed for correctness and cannot be switched off: finalizers of fsspec's file systems wait for an event loop
whose thread exists only in the parent, so the child would never exit. Python lists finalizers only in the private
`weakref.finalize._registry`; without that attribute nothing is done.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable

__all__ = ["keep_from_running"]


def keep_from_running(owners: Iterable[object]) -> None:
    """Keep the `weakref.finalize` callbacks of these objects from running when this process exits."""
    ids = {id(owner) for owner in owners}
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):
        found = finalizer.peek()
        if found is not None and id(found[0]) in ids:
            finalizer.atexit = False

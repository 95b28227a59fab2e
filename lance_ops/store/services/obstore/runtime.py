"""Whether obstore can be used in this process.

obstore starts threads of its own at its first request, and starts them once. They do not exist in a forked child, where
every request would wait for them forever, also with a new client.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

__all__ = ["TESTED_RELEASE", "is_installed", "is_safe_after_fork"]

TESTED_RELEASE = "0.12"
"""The release whose errors `errors.py` understands, and which the extra installs."""

_PACKAGE = "obstore"


class _Inheritance:
    """Whether a process that this one was forked from had loaded obstore. A process that it spawns begins anew."""

    def __init__(self) -> None:
        self.is_inherited = False

    def after_fork(self) -> None:
        # Other code of the parent may have used the package too, so that it was loaded is what counts.
        self.is_inherited = self.is_inherited or _PACKAGE in sys.modules


@cache
def is_installed() -> bool:
    """Return whether the tested release is installed; another one may have come with another package."""
    try:
        return version(_PACKAGE).startswith(f"{TESTED_RELEASE}.")
    except PackageNotFoundError:
        return False


def is_safe_after_fork() -> bool:
    """Return False if a parent process had loaded obstore before it forked this one."""
    return not _INHERITANCE.is_inherited


_INHERITANCE = _Inheritance()
os.register_at_fork(after_in_child=_INHERITANCE.after_fork)

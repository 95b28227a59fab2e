"""Remember the directories that this process made, so that a write that fails leaves no empty one behind.

Only these are removed when they become empty: an empty directory that was there before belongs to somebody else. A
writer that finds its directory removed makes it again (`staging.create_temporary`).
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

__all__ = ["MADE_DIRECTORIES", "MadeDirectories"]

_MOST_REMEMBERED = 10_000


class MadeDirectories:
    """The directories of one process; the oldest ones are forgotten."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, None] = OrderedDict()
        self.reset()

    def reset(self) -> None:
        """Take a new lock: in a forked child, a thread that does not exist there may hold the old one."""
        self._lock = threading.Lock()

    def make(self, directory: str) -> None:
        """Make a directory whose parent exists; one that exists already is left as it is, and not remembered."""
        with self._lock:
            try:
                os.mkdir(directory)
            except FileExistsError:  # another process made it meanwhile
                return
            self._made[directory] = None
            if len(self._made) > _MOST_REMEMBERED:
                self._made.popitem(last=False)

    def remove(self, directory: str) -> None:
        """Remove a directory and those above it, as long as they are empty and this process made them."""
        while directory in self._made:
            with self._lock:
                try:
                    os.rmdir(directory)
                except FileNotFoundError:  # another writer removed it
                    pass
                except OSError:
                    return
                self._made.pop(directory, None)
            directory = os.path.dirname(directory)


MADE_DIRECTORIES = MadeDirectories()
os.register_at_fork(after_in_child=MADE_DIRECTORIES.reset)

"""Make a folder in memory for the files of a test run, if the machine has room for it.

Most tests write small files and sync them, so a disk makes them wait. Tests of disks ask for `on_disk`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

import psutil

__all__ = ["make_memory_folder"]

_ROOT = Path("/dev/shm")
_PREFIX = "lance-ops-tests-"
_LEAST_BYTES = 8 << 30
"""A run uses memory for its files only if this much is free. The files of a whole run take a few gigabytes."""


def make_memory_folder() -> Path | None:
    """Make a folder that this process locks until it ends, and remove those of killed runs.

    Returns None if the machine has no file system in memory, or too little memory.
    """
    if not _ROOT.is_dir():
        return None
    for folder in _ROOT.glob(f"{_PREFIX}*"):
        if _lock(folder):
            shutil.rmtree(folder, ignore_errors=True)
    if min(shutil.disk_usage(_ROOT).free, psutil.virtual_memory().available) < _LEAST_BYTES:
        return None
    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_ROOT))
    return made if _lock(made) else None


def _lock(folder: Path) -> bool:
    """Lock a folder until this process ends; return whether no other process has locked it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

"""A folder in memory for the files of a run of tests, if the machine has room for it.

Most tests write small files and sync them, so a disk makes them wait. Tests of disks ask for `on_disk`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil

__all__ = ["make_memory_folder", "remove_folders_of_dead_runs"]

_ROOT = Path("/dev/shm")
_PREFIX = "lance-ops-tests-"
_LEAST_BYTES = 8 << 30
"""The free memory from which a run takes some of it; its files take a quarter of that at most."""


def make_memory_folder() -> Path | None:
    """Make a folder for this process; None if the machine has no such file system, or too little memory."""
    if not _ROOT.is_dir():
        return None
    remove_folders_of_dead_runs()
    if min(shutil.disk_usage(_ROOT).free, psutil.virtual_memory().available) < _LEAST_BYTES:
        return None
    folder = _ROOT / f"{_PREFIX}{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(0o700)
    return folder


def remove_folders_of_dead_runs() -> None:
    """Remove what runs left that were killed."""
    for folder in _ROOT.glob(f"{_PREFIX}*"):
        if not psutil.pid_exists(int(folder.name.removeprefix(_PREFIX))):
            shutil.rmtree(folder, ignore_errors=True)

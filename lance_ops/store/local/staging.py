"""Write a temporary file beside its target, then give it the target's name in one step.

Readers see the old file or the new one, never a part. A temporary file that a crashed writer left is removed by
clean-up.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from io import RawIOBase

from lance_ops.store.contract import BytesLike
from lance_ops.store.local.made_directories import MADE_DIRECTORIES
from lance_ops.store.local.syncing import make_directory, sync, with_names
from lance_ops.store.paths import TEMPORARY_PREFIX

__all__ = ["FILE_MODE", "copy_all", "create_temporary", "discard", "publish", "stage", "write_all"]

FILE_MODE = 0o666
"""The mode of new files, of which the process's umask removes bits."""

_COPY_BYTES = 4 << 20
_DIRECTORY_ATTEMPTS = 10


def create_temporary(directory: str) -> tuple[str, int]:
    """Create an empty temporary file, and its directories where needed; return its path and descriptor."""
    staged = f"{directory}/{TEMPORARY_PREFIX}{os.urandom(16).hex()}"
    attempts = 0
    while True:
        attempts += 1
        try:
            return staged, os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        except FileNotFoundError:  # no directory yet, or a concurrent delete removed it after it was made here
            if attempts == _DIRECTORY_ATTEMPTS:
                raise
        with suppress(FileNotFoundError):  # the concurrent delete removed the directory above it as well
            make_directory(directory)


def stage(target: str, fill: Callable[[int], object]) -> str:
    """Fill a temporary file beside `target` and return its path; remove it on failure."""
    staged, descriptor = create_temporary(os.path.dirname(target))
    try:
        try:
            fill(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        discard(staged)
        raise
    return staged


def discard(staged: str) -> None:
    """Remove a file that was not written to its end, and the directories that were made for it alone.

    If that fails, clean-up removes it later.
    """
    with suppress(OSError):
        os.unlink(staged)
    MADE_DIRECTORIES.remove(os.path.dirname(staged))


def publish(staged: str, target: str, durable: bool) -> None:
    """Give a staged file its name, replacing another file of that name. On failure the staged file is removed."""
    try:
        replaces = durable and os.path.lexists(target)
        if replaces:
            sync([staged])  # after a power cut there is the old file or the new one
        os.replace(staged, target)
    except BaseException:
        discard(staged)
        raise
    if replaces:
        sync([os.path.dirname(target)])
    elif durable:
        try:
            sync(with_names([target]))
        except BaseException:
            discard(target)
            raise


def write_all(descriptor: int, data: BytesLike) -> None:
    """Write all of the bytes; one system call may write fewer."""
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def copy_all(file: RawIOBase, descriptor: int) -> None:
    """Copy an open file to a descriptor, which stays open."""
    with open(descriptor, "wb", buffering=0, closefd=False) as copy:
        shutil.copyfileobj(file, copy, _COPY_BYTES)

"""Seal a directory, and return a stamp of its own times that changes when a name in it comes or goes.

When a name comes or goes, the system sets the directory's time of modification and time of change to the same moment. A
process can set the time of modification, but nobody can set the time of change. So after we have moved a directory's
time of modification, the two times stay as they are until a name comes or goes. This holds for a coarse clock, for a
clock that is set back, and for a copied or restored directory: a copy has another time of change. ADR 16 has the full
argument.

Gain: finding the newest of 100 versions takes 0.56 of the time, of 2000 versions 0.05 (ADR 19). Switch off with
`LANCE_OPS_DISABLE=seals`.
"""

from __future__ import annotations

import os
import secrets

from lance_ops.core.tricks import Trick

__all__ = ["seal_directory", "stamp_directory"]

_BITS_BACK = 24  # at most 17 ms, no more than a file system's clock may lag anyway


def stamp_directory(directory: int) -> str | None:
    """Return the identity and the times of an open directory, or None with the trick off. Raises `OSError`.

    The caller opens the directory for this call, because only then a network file system asks its server.
    """
    return _stamp(os.fstat(directory)) if Trick.SEALS.is_on() else None


def seal_directory(directory: int) -> str | None:
    """Move an open directory's time of modification a little back and return its new stamp. Raises `OSError`.

    Returns None with the trick off, where setting the time is not allowed (a directory of another user), and where the
    file system does not keep the time exactly. Returns None too if the two times differ before: then either another
    process has just sealed the directory, or changes in it do not set both times and would not break a seal.
    """
    if not Trick.SEALS.is_on():
        return None
    status = os.fstat(directory)
    if status.st_mtime_ns != status.st_ctime_ns:
        return None
    # At random, so that two seals within one tick of the clock differ too.
    moved = status.st_mtime_ns - 1 - secrets.randbits(_BITS_BACK)
    try:
        os.utime(directory, ns=(status.st_atime_ns, moved))
    except OSError:
        return None
    status = os.fstat(directory)
    return _stamp(status) if status.st_mtime_ns == moved != status.st_ctime_ns else None


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}"

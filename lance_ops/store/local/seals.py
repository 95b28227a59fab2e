"""Tell by a directory's own times whether its names are still the same.

A name that comes or goes sets both of a directory's times, of modification and of change, to one and the same moment.
Who *sets* its time of modification, on the other hand, leaves a time of change that nobody can set. So a directory
whose time of modification we moved shows that very pair of times until a name comes or goes, however coarse the clock
is, whatever it is set to, and whatever the directory is copied or restored to: a copy has another time of change.
"""

from __future__ import annotations

import os
import secrets

__all__ = ["seal", "stamp"]

_BITS_BACK = 24  # at most 17 ms: no more than by how much a file system's clock may lag anyway


def stamp(directory: int) -> str:
    """Return which open directory it is, and in which state; raise `OSError`.

    It is opened for that, since only then a network file system asks its server.
    """
    return _stamp(os.fstat(directory))


def seal(directory: int) -> str | None:
    """Move an open directory's time of modification a little back and return its stamp; raise `OSError`.

    Returns None if that is not allowed, as in another user's directory, if the file system does not keep the time it
    is given, and if the last change did not set both times alike: then somebody else has just sealed the directory, or
    changes in it would not break a seal.
    """
    status = os.fstat(directory)
    if status.st_mtime_ns != status.st_ctime_ns:
        return None
    # At random, so that not even two seals of one tick of the clock are alike.
    moved = status.st_mtime_ns - 1 - secrets.randbits(_BITS_BACK)
    try:
        os.utime(directory, ns=(status.st_atime_ns, moved))
    except OSError:
        return None
    status = os.fstat(directory)
    return _stamp(status) if status.st_mtime_ns == moved != status.st_ctime_ns else None


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}"

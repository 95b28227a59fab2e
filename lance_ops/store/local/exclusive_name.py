"""Give a staged local file its final name unless the name is taken: the one atomic step of a local commit.

`open(O_EXCL)` is exclusive too, but shows the file before its bytes are written. A check followed by a rename lets two
writers win. A hard link is exclusive and shows a complete file. Where the file system has no links (exFAT, many FUSE
mounts), the kernel's exclusive rename does the same. Where it has neither, no system call does, and the store raises
`UnsafeStore`. The rename is called through ctypes. It is needed for correctness and cannot be switched off.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

from lance_ops.core.errors import UnsafeStore

__all__ = ["link_if_absent"]

_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK})
_NO_EXCLUSIVE_RENAME = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1  # linux/fs.h
_RENAME_EXCL = 4  # sys/stdio.h of macOS


def link_if_absent(staged: str, target: str) -> bool:
    """Make `target` name the staged file and return True; return False if another file has that name.

    The staged name may or may not remain. Raises `UnsafeStore` where the file system has neither a link nor an
    exclusive rename, and `OSError` when the outcome is not known.
    """
    try:
        os.link(staged, target)
    except FileExistsError:
        return _is_same_file(staged, target)
    except OSError as error:
        # A network file system that lost the answer reports an error, or EEXIST above, although it has made the link.
        if _is_same_file(staged, target):
            return True
        if error.errno not in _NO_LINKS:
            raise
        return _rename_if_absent(staged, target)
    return True


def _is_same_file(staged: str, target: str) -> bool:
    try:
        return os.path.samestat(os.lstat(staged), os.lstat(target))
    except FileNotFoundError:
        return False


def _rename_if_absent(staged: str, target: str) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    old, new = os.fsencode(staged), os.fsencode(target)
    if sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(old, new, ctypes.c_uint(_RENAME_EXCL)) != 0
    elif hasattr(libc, "renameat2"):
        failed = libc.renameat2(_AT_FDCWD, old, _AT_FDCWD, new, ctypes.c_uint(_RENAME_NOREPLACE)) != 0
    else:
        raise _unsafe(target)
    if not failed:
        return True
    code = ctypes.get_errno()
    if code == errno.EEXIST:
        return False
    if code in _NO_EXCLUSIVE_RENAME:
        raise _unsafe(target)
    raise OSError(code, os.strerror(code), target)


def _unsafe(target: str) -> UnsafeStore:
    return UnsafeStore(
        f"{os.path.dirname(target)}: this file system has neither hard links nor an exclusive rename, so two writers "
        "could both commit the same version; keep the dataset on another file system or in an object store"
    )

"""The memory of the compiler, given back.

LLVM is a library of some hundred megabytes. Loading a kernel touches most of its code, running one none of it, and a
process would go on holding all of it. The pages are the file's own, never written to: dropped, they come back from the
system's cache when the next kernel is loaded.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["release_compiler"]

_COMPILER = "libllvmlite"
_MADV_DONTNEED = 4


def release_compiler() -> None:
    """Let go of the resident pages of the compiler's code, where the system can say which they are."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, flags, *rest = line.split(maxsplit=5)
            # only code: what the loader relocated is read-only by now too, but no longer as it is in the file
            if flags == "r-xp" and _COMPILER in rest[-1]:
                start, _, end = span.partition("-")
                advise(int(start, 16), int(end, 16) - int(start, 16), _MADV_DONTNEED)

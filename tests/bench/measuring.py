"""Measure one operation of this process: its time, its CPU time, and the most memory it held."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["compile_kernels", "give_back_memory", "measured", "touch"]

_PAGE_BYTES = 4096


def compile_kernels() -> None:
    """Fill the cache of compiled kernels, as an image does when it is built: a fresh checkout has none."""
    subprocess.run([sys.executable, "-m", "lance_ops.kernels.warm"], check=True)


def measured(operation: Callable[[], object]) -> dict[str, Any]:
    """Run an operation and return the fields of a `Sample`.

    What was written before goes to the disk first. Otherwise an operation that syncs would also wait for what the copy
    of its table, or the other contender's round, left unwritten.
    """
    gc.collect()
    os.sync()
    _forget_peak()
    cpu, start = time.process_time(), time.perf_counter()
    result = operation()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    peak_bytes = _peak_bytes()
    del result
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": peak_bytes}


def touch(table: pa.Table) -> pa.Table:
    """Read one byte in each memory page of a table, so that a memory-mapped table pays for its bytes; return it."""
    seen: set[int] = set()
    for column in table.columns:
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                if buffer is not None and buffer.size and buffer.address not in seen:
                    seen.add(buffer.address)
                    np.frombuffer(buffer, dtype=np.uint8)[::_PAGE_BYTES].max()
    return table


def give_back_memory() -> None:
    """Return the memory that allocators keep after one operation, so that it does not count for the next one.

    It is not called between rounds of one operation: there, allocators keep freed memory as in a long-lived process.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _forget_peak() -> None:
    # Linux's way to start the high-water mark of resident memory anew; `ru_maxrss` would keep the warm-up's, and
    # the parent's from before the exec.
    Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

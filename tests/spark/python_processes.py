"""The Python processes of a Spark session on this machine: its daemons and their workers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

__all__ = ["cpu_seconds", "daemons", "end_workers"]

_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS_TO_END = 120.0
_SEEN: dict[tuple[int, str], float] = {}
"""The CPU time of each process that was seen, by its id and the time of its start."""


def end_workers() -> int:
    """End all workers of this process's sessions, as a minute without work does; return their number.

    Daemons stay. Spark asks an idle worker whether it is alive, and then has the daemon fork another.
    """
    families = _families()
    workers = [pid for daemon in daemons(families) for pid in families.get(daemon, [])]
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _SECONDS_TO_END
    while any(_fields_of(pid) for pid in workers):  # Spark takes one that its daemon has not reaped yet for alive
        if time.monotonic() > deadline:
            raise RuntimeError(f"workers {workers} do not end")
        time.sleep(0.01)
    return len(workers)


def cpu_seconds() -> float:
    """Return the CPU time so far of this process and of all processes beneath it, with the JVM.

    A daemon's workers hand their time to nobody when they end, so what was seen of them stays in the sum.
    """
    for pid in [os.getpid(), *_beneath(os.getpid(), _families())]:
        if fields := _fields_of(pid):
            _SEEN[pid, fields[19]] = sum(map(int, fields[11:15])) / _TICKS
    return sum(_SEEN.values())


def daemons(families: dict[int, list[int]] | None = None) -> list[int]:
    """Return the processes that fork workers for this process's sessions."""
    families = _families() if families is None else families
    return [
        pid
        for pid in _beneath(os.getpid(), families)
        if b"daemon" in _command(pid) and b"daemon" not in _command(_parent(pid))
    ]


def _beneath(root: int, families: dict[int, list[int]]) -> list[int]:
    children = families.get(root, [])
    return [*children, *(pid for child in children for pid in _beneath(child, families))]


def _families() -> dict[int, list[int]]:
    """Return the children of every process, by the parent that each of them names.

    The system's own lists of children are kept by thread: one thread of the JVM that ends meanwhile hides them all.
    """
    families: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        families.setdefault(_parent(int(entry.name)), []).append(int(entry.name))
    return families


def _parent(pid: int) -> int:
    fields = _fields_of(pid)
    return int(fields[1]) if fields else -1  # ended; 0 is the parent of the first process


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0-m\0")[2] if pid > 0 else b""
    except OSError:
        return b""


def _fields_of(pid: int) -> list[str]:
    """Return the numbered fields of a process after its name, which may hold spaces; [] if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []

"""The Python processes of a Spark session on this machine: its daemons and their workers."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

__all__ = ["cpu_seconds", "end_workers"]

_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS_TO_END = 10.0
_SEEN: dict[tuple[int, str], float] = {}
"""The CPU time of each process that was seen, by its id and the time of its start."""


def end_workers() -> int:
    """End all workers of this process's sessions, as a minute without work does; return their number.

    Daemons stay. Spark asks an idle worker whether it is alive, and then has the daemon fork another.
    """
    workers = [pid for daemon in _daemons() for pid in _children(daemon)]
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
    pending = [os.getpid()]
    while pending:
        pid = pending.pop()
        fields = _fields_of(pid)
        if fields:
            _SEEN[pid, fields[19]] = sum(map(int, fields[11:15])) / _TICKS
            pending += _children(pid)
    return sum(_SEEN.values())


def _daemons() -> list[int]:
    return [
        pid for pid in _beneath(os.getpid()) if b"daemon" in _command(pid) and b"daemon" not in _command(_parent(pid))
    ]


def _beneath(root: int) -> list[int]:
    children = _children(root)
    return [*children, *(pid for child in children for pid in _beneath(child))]


def _children(pid: int) -> list[int]:
    try:
        tasks = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
        return [int(child) for task in tasks for child in task.read_text().split()]
    except OSError:  # it has ended meanwhile
        return []


def _parent(pid: int) -> int:
    fields = _fields_of(pid)
    return int(fields[1]) if fields else 0


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0-m\0")[2] if pid else b""
    except OSError:
        return b""


def _fields_of(pid: int) -> list[str]:
    """Return the numbered fields of a process after its name, which may hold spaces; [] if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []

"""Describe the machine and software of a run, so that readers can judge its numbers; nothing names the host."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

__all__ = ["commit_of_tree", "setting"]

# Above this, other processes compete for the cores that a run has.
_IDLE_LOAD = 0.5


def setting(load_before: float, seconds: float, scale: float, *, measured_on: str = "one") -> dict[str, str]:
    """Describe the run that ends now; `load_before` is the load average before it began."""
    cores = os.cpu_count() or 1
    # While it runs, two of its own processes are busy at most: one measured, one that prepares the next case.
    shared = load_before > _IDLE_LOAD
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{_cpu_model()}, {cores} cores, measured on {measured_on}",
        "neighbours": f"load {load_before:.1f} before it" + (": the machine was shared" if shared else ""),
        "took": f"{seconds:.0f} s",
        "scale": f"{scale:g}",
        "python": platform.python_version(),
        "pylance": version("pylance"),
        "pyarrow": version("pyarrow"),
        "numba": version("numba"),
        "commit": commit_of_tree(),
    }


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def commit_of_tree() -> str:
    """Return the commit of the work tree; `-dirty` at its end marks code that is not committed.

    Documents do not count: a bench writes its page between its parts.
    """
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)docs")
    return f"{_git('describe', '--always') or 'unknown'}{'-dirty' if changed else ''}"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout.strip()

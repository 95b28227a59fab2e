"""Find the compiled code that a new process would load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lance_ops.kernels.runs import expand_runs

__all__ = ["cached_code"]


def cached_code() -> tuple[Path | None, int]:
    """Return the folder of the compiled kernels and how many it has; None and 0 if no folder can be written."""
    kernel: Any = expand_runs  # all kernels of a folder of sources share one
    folder = getattr(kernel._cache, "cache_path", None)
    if folder is None:
        return None, 0
    return Path(folder), sum(1 for _ in Path(folder).glob("*.nbi"))

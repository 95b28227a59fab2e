"""The number of cores that this process may use."""

from __future__ import annotations

import os

__all__ = ["available_cores"]


def available_cores() -> int:
    """Return the number of cores that this process may use, which in a container may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

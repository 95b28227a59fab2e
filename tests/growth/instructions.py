"""Count the Python instructions that a call executes, in every thread.

Seconds depend on the machine and on what else it does. The number of instructions depends on the work alone, so a test
can assert how it grows. Compiled loops do not count: what grows is Python that runs once a fragment or once a column.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["count_instructions"]


def count_instructions(call: Callable[[], object]) -> int:
    """Call `call` and return how many bytecode instructions this thread, and threads started meanwhile, executed."""
    counts: dict[int, int] = {}

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            thread = threading.get_ident()
            counts[thread] = counts.get(thread, 0) + 1
        return trace

    threading.settrace(trace)
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
        threading.settrace(None)
    return sum(counts.values())

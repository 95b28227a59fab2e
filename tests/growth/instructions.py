"""Count the Python instructions that a call executes, in every thread.

Seconds depend on the machine and on what else it does. The number of instructions depends on the work alone, so a test
can assert how it grows. Compiled loops do not count: what grows is Python that runs once a fragment or once a column.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count
from types import FrameType
from typing import Any

__all__ = ["count_instructions"]


def count_instructions(call: Callable[[], object]) -> int:
    """Call `call` and return how many bytecode instructions this thread, and threads started meanwhile, executed."""
    counted = count()
    add_one = counted.__next__  # one step of the interpreter: threads lose no instruction

    def begin(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return look

    def look(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            add_one()
        return look

    threading.settrace(begin)
    sys.settrace(begin)
    try:
        call()
    finally:
        sys.settrace(None)
        threading.settrace(None)
    return next(counted)

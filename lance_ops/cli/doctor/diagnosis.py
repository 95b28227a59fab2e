"""One thing that was examined: what was found, and what helps."""

from __future__ import annotations

from enum import Enum

from lance_ops.core.records import dataclass

__all__ = ["Diagnosis", "Verdict"]


class Verdict(Enum):
    """A `WARN` costs time or comfort; with a `FAIL`, work fails or data is at risk. `ABSENT` is not installed."""

    OK = "ok"
    ABSENT = "absent"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Diagnosis:
    """What was found of one thing. `remedy` says what to do; it is empty if there is nothing to do."""

    subject: str
    verdict: Verdict
    what: str
    remedy: str = ""

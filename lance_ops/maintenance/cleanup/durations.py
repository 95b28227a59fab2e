"""Parse and format durations as the reference's configuration spells them: `14days`, `1h 30m`, `1year 2months 3s`.

A month is 30.44 days, a year 365.25.
"""

from __future__ import annotations

import re
from datetime import timedelta

from lance_ops.core.errors import InvalidInput

__all__ = ["format_duration", "parse_duration"]

_YEAR, _MONTH = 31_557_600, 2_630_016  # seconds
_WRITTEN = (("year", _YEAR), ("month", _MONTH), ("day", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_READ = {
    "nsec ns": 1e-9,
    "usec us": 1e-6,
    "msec ms": 1e-3,
    "seconds second secs sec s": 1,
    "minutes minute mins min m": 60,
    "hours hour hrs hr h": 3_600,
    "days day d": 86_400,
    "weeks week wk w": 604_800,
    "months month M": _MONTH,
    "years year yr y": _YEAR,
}
_SECONDS = {name: seconds for names, seconds in _READ.items() for name in names.split()}
_PART = re.compile(r"(\d+)\s*([A-Za-z]+)\s*")
_LONGEST = timedelta.max


def parse_duration(text: str) -> timedelta:
    """Return a duration, at most `timedelta.max`; raise `InvalidInput` for any other text."""
    at, seconds = 0, 0.0
    stripped = text.strip()
    while at < len(stripped):
        match = _PART.match(stripped, at)
        if match is None or match[2] not in _SECONDS:
            raise InvalidInput(f"{text!r} is not a duration such as '14days' or '1h 30m'")
        seconds += int(match[1]) * _SECONDS[match[2]]
        at = match.end()
    if not stripped:
        raise InvalidInput("an empty text is not a duration such as '14days' or '1h 30m'")
    return timedelta(seconds=seconds) if seconds < _LONGEST.total_seconds() else _LONGEST


def format_duration(duration: timedelta) -> str:
    """Write a duration to the second; raise `InvalidInput` for a negative one."""
    rest = duration // timedelta(seconds=1)
    if rest < 0:
        raise InvalidInput(f"a duration must not be negative, as {duration} is")
    parts = []
    for unit, seconds in _WRITTEN:
        count, rest = divmod(rest, seconds)
        if count:
            parts.append(f"{count}{unit}{'s' if count > 1 and len(unit) > 1 else ''}")
    return " ".join(parts) or "0s"

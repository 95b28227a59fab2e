"""Parse dates, times and timestamps from text, to the nanosecond."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.records import dataclass

__all__ = ["Instant", "parse_instant", "parse_time"]

_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
_TIME_TEXT = re.compile(_TIME)
_INSTANT_TEXT = re.compile(
    rf"(?P<year>\d{{4}})-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}})"
    rf"(?:[T ]{_TIME}\s*(?P<zone>Z|z|UTC|[+-]\d{{2}}(?::?\d{{2}})?)?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Instant:
    """Nanoseconds since 1970: of UTC, or of the wall clock when no zone was named."""

    nanoseconds: int
    in_utc: bool

    def wall_time_in(self, zone: str) -> int:
        """Return the nanoseconds of UTC at which clocks in the zone show this wall time, the earlier when two do.

        For a wall time that the zone skips, return the last microsecond before the skipped ones.
        """
        seconds, rest = divmod(self.nanoseconds, 10**9)
        before, after = (_assume(seconds, zone, skipped) for skipped in ("earliest", "latest"))
        return after * 10**9 - 1000 if before != after else before * 10**9 + rest


def parse_instant(text: str) -> Instant | None:
    """Parse a date, or a date and a time, with or without a zone; return None for any other text."""
    match = _INSTANT_TEXT.fullmatch(text.strip())
    if match is None:
        return None
    try:
        day = datetime(int(match["year"]), int(match["month"]), int(match["day"]), tzinfo=UTC)
    except ValueError:
        return None
    within_day = _nanoseconds(match)
    if within_day is None:
        return None
    nanoseconds = (day - _EPOCH) // timedelta(seconds=1) * 10**9 + within_day
    zone = match["zone"]
    return Instant(nanoseconds - _offset(zone) * 10**9 if zone else nanoseconds, bool(zone))


def parse_time(text: str) -> int | None:
    """Parse a time of day as nanoseconds; return None for any other text."""
    match = _TIME_TEXT.fullmatch(text.strip())
    return _nanoseconds(match) if match else None


def _assume(seconds: int, zone: str, skipped: str) -> int:
    wall = pa.scalar(seconds, pa.timestamp("s"))
    moment: Any = pc.assume_timezone(wall, zone, ambiguous="earliest", nonexistent=skipped)
    return int(moment.value)


def _nanoseconds(match: re.Match[str]) -> int | None:
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((hour * 60 + minute) * 60 + second) * 10**9 + int((match["fraction"] or "").ljust(9, "0"))


def _offset(zone: str) -> int:
    """Return the seconds by which a zone's clocks are ahead of UTC."""
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = (int(digits[:2]) * 60 + int(digits[2:])) * 60
    return -seconds if zone[0] == "-" else seconds

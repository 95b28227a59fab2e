"""Find the time zone of the session in a task of Spark, which reads dates and clocks without a zone by it.

Spark tells a data source no time zone. A task takes the setting of the session, which is among its properties; else
`-Duser.timezone` of the driver's Java options; else `TZ` or the link `/etc/localtime` of its own machine; else UTC.
"""

from __future__ import annotations

import os
import re

from pyspark import TaskContext

__all__ = ["session_time_zone"]

_SETTING = "spark.sql.session.timeZone"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_OF_JAVA = re.compile(r"-Duser\.timezone=(\S+)")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


def session_time_zone() -> str:
    """Return the time zone of the session whose task this is, spelled as Arrow knows it; outside a task UTC."""
    context = TaskContext.get()
    if context is None:
        return "UTC"
    of_java = _OF_JAVA.search(context.getLocalProperty(_JAVA_OPTIONS) or "")
    return _known_to_arrow(context.getLocalProperty(_SETTING) or (of_java[1] if of_java else _zone_of_machine()))


def _known_to_arrow(zone: str) -> str:
    """Return a zone of Java as Arrow spells it: `GMT+2` is `+02:00`."""
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return "UTC" if zone == "Z" else zone
    sign, hours, minutes = offset.groups()
    return f"{sign}{int(hours):02}:{minutes or '00'}"


def _zone_of_machine() -> str:
    named = os.environ.get("TZ", "").lstrip(":")
    return named or os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2] or "UTC"

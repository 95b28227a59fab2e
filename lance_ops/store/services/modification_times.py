"""Read when an object was modified from what a file system of fsspec states of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

__all__ = ["modified_of", "moment_of"]


def modified_of(info: Mapping[str, Any]) -> datetime | None:
    """Return when a file was modified, which fsspec's file systems state under different names.

    A time without a zone is in UTC. Return None if none is stated, or in none of the forms that are known.
    """
    for name in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        match info.get(name):
            case datetime() as moment:
                return _in_utc(moment)
            case float() | int() as seconds if (instant := moment_of(seconds)) is not None:
                return instant
            case str() as text:
                with suppress(ValueError):
                    return _in_utc(datetime.fromisoformat(text))
    return None


def moment_of(seconds: float) -> datetime | None:
    """Return the time this many seconds after 1970. Return None for a number beyond all dates: some disks store one."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)

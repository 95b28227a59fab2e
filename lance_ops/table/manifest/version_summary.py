"""The summary of a version that a list of versions shows, read from a manifest without decoding the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from lance_ops.core.errors import CorruptFile, UnsupportedFeature
from lance_ops.pb import manifest_parts_pb2, table_pb2
from lance_ops.table.fragments import FragmentTotals

__all__ = ["VersionSummary", "check_has_no_fragment_tree", "time_of", "timestamp_ns_of"]

_NANOS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP_SECONDS = range(-62_135_596_800, 253_402_300_800)  # years 1 to 9999, as protobuf bounds them


class VersionSummary(NamedTuple):
    """A version's number, its time (see `Manifest.timestamp`), and the number and totals of its fragments."""

    version: int
    timestamp: datetime | None
    num_fragments: int
    totals: FragmentTotals

    @classmethod
    def from_pb(cls, message: manifest_parts_pb2.ManifestSummary, path: str) -> VersionSummary:
        """Read the message; `path` names the manifest in errors.

        Raises `CorruptFile` for a false time, and `UnsupportedFeature` for a fragment tree.
        """
        check_has_no_fragment_tree(message, path)
        timestamp = time_of(timestamp_ns_of(message, path))
        return cls(message.version, timestamp, len(message.fragments), FragmentTotals.from_pb(message))


def check_has_no_fragment_tree(message: table_pb2.Manifest | manifest_parts_pb2.ManifestSummary, path: str) -> None:
    """Raise `UnsupportedFeature` for a manifest that keeps its fragments in a tree."""
    if message.HasField("fragment_tree"):
        raise UnsupportedFeature("a fragment tree (manifest field 22)", path)


def timestamp_ns_of(message: table_pb2.Manifest | manifest_parts_pb2.ManifestSummary, path: str) -> int | None:
    """Return the nanoseconds since 1970 that a manifest states, None if it states no time."""
    if not message.HasField("timestamp"):
        return None
    seconds, nanos = message.timestamp.seconds, message.timestamp.nanos
    if seconds not in _TIMESTAMP_SECONDS or not 0 <= nanos < _NANOS:
        raise CorruptFile(path, "timestamp", f"{seconds} s and {nanos} ns is not a time")
    return seconds * _NANOS + nanos


def time_of(timestamp_ns: int | None) -> datetime | None:
    """Return a number of nanoseconds since 1970 as a time in UTC, to the microsecond."""
    return None if timestamp_ns is None else _EPOCH + timedelta(microseconds=timestamp_ns // 1000)

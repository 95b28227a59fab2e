"""Zones as values: summarize rows into zones, join neighbouring zones, and find where zones moved.

A zone is `rows_per_zone` live rows of one fragment that follow each other. It spans the physical rows from the first to
the last of them, with the deleted rows between. Its bounds are order keys of the values that are neither null nor NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lance_ops.core.addresses import fragment_of, offset_of
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.indices.sort_keys import Key
from lance_ops.table.rows import bitmap_of

__all__ = ["Zone", "ZoneBuilder", "bound_keys", "joined_zones", "widest_bounds"]


@dataclass(frozen=True, slots=True)
class Zone:
    """The physical rows `start` to `stop` (exclusive) of a fragment, and what is known of their values.

    `has_values` says whether a value that is neither null nor NaN may be among them. A bound of None is then unknown.
    """

    fragment_id: int
    start: int
    stop: int
    lower: Key | None = None
    upper: Key | None = None
    null_count: int = 0
    nan_count: int = 0
    has_values: bool = False

    def joined(self, other: Zone) -> Zone:
        """Return the zone of the rows of both and of those between them; both are in one fragment."""
        sides = [zone for zone in (self, other) if zone.has_values]
        lowers: list[Any] = [zone.lower for zone in sides]
        uppers: list[Any] = [zone.upper for zone in sides]
        return Zone(
            self.fragment_id,
            min(self.start, other.start),
            max(self.stop, other.stop),
            None if None in lowers else min(lowers, default=None),
            None if None in uppers else max(uppers, default=None),
            self.null_count + other.null_count,
            self.nan_count + other.nan_count,
            bool(sides),
        )


def bound_keys(values: pa.Array) -> pa.Array:
    """Convert values to a type of which Arrow computes minimum and maximum; their order stays, and so do nulls."""
    if pa.types.is_float16(values.type):
        return values.cast(pa.float32())
    if pa.types.is_temporal(values.type):
        return values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return values


def widest_bounds(value_type: pa.DataType) -> tuple[Key, Key] | tuple[None, None]:
    """Return bounds of all values of a type, as order keys; (None, None) if each zone with values of it has bounds.

    The reference states no bounds of bytes of a fixed size, and some of its releases NaN for both bounds of floats.
    """
    if pa.types.is_floating(value_type):
        return -math.inf, math.inf
    if pa.types.is_fixed_size_binary(value_type):
        return bytes(value_type.byte_width), b"\xff" * value_type.byte_width
    return None, None


def joined_zones(zones: Iterable[Zone], rows_per_zone: int) -> Iterator[Zone]:
    """Yield the zones with neighbours joined while they span at most `rows_per_zone` rows.

    The zones come in the order of their rows. Compactions of short fragments would otherwise leave many short zones.
    """
    open_zone: Zone | None = None
    for zone in zones:
        if (
            open_zone is not None
            and open_zone.fragment_id == zone.fragment_id
            and zone.stop - open_zone.start <= rows_per_zone
        ):
            open_zone = open_zone.joined(zone)
            continue
        if open_zone is not None:
            yield open_zone
        open_zone = zone
    if open_zone is not None:
        yield open_zone


class ZoneBuilder:
    """Summarizes rows into zones while they pass. The rows of one fragment come in ascending order."""

    def __init__(self, rows_per_zone: int) -> None:
        self._rows_per_zone = rows_per_zone
        self._zones: list[Zone] = []
        self._open: Zone | None = None
        self._open_rows = 0
        self.nulls: dict[int, BitMap] = {}
        """The offsets of the rows without a value, by fragment."""

    def add(self, values: pa.Array, row_addrs: Uint64Array) -> None:
        """Summarize rows, given their values and addresses."""
        fragments = fragment_of(row_addrs)
        cuts = [0, *(np.flatnonzero(np.diff(fragments)) + 1).tolist(), len(values)]
        for start, stop in pairwise(cuts if len(values) else ()):
            self._add_of_fragment(int(fragments[start]), values.slice(start, stop - start), row_addrs[start:stop])

    def finish(self) -> list[Zone]:
        """Return the zones in the order of their rows."""
        self._close()
        return sorted(self._zones, key=lambda zone: (zone.fragment_id, zone.start))

    def _add_of_fragment(self, fragment_id: int, values: pa.Array, row_addrs: Uint64Array) -> None:
        offsets = offset_of(row_addrs)
        if values.null_count:
            nulls = bitmap_of(offsets[np.flatnonzero(pc.is_null(values).to_numpy(zero_copy_only=False))])
            self.nulls.setdefault(fragment_id, BitMap()).update(nulls)
        if self._open is not None and self._open.fragment_id != fragment_id:
            self._close()
        at = 0
        while at < len(values):
            stop = min(at + self._rows_per_zone - self._open_rows, len(values))
            zone = _summary(fragment_id, values.slice(at, stop - at), int(offsets[at]), int(offsets[stop - 1]) + 1)
            self._open = zone if self._open is None else self._open.joined(zone)
            self._open_rows += stop - at
            at = stop
            if self._open_rows == self._rows_per_zone:
                self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._zones.append(self._open)
        self._open, self._open_rows = None, 0


def _summary(fragment_id: int, values: pa.Array, start: int, stop: int) -> Zone:
    keys = bound_keys(values)
    nan_count = 0
    if pa.types.is_floating(keys.type):
        is_nan = pc.is_nan(keys)
        nan_count = int(is_nan.true_count)
        if nan_count:  # a NaN may have a sign, and Arrow's order of NaNs is not ours
            keys = keys.filter(pc.invert(is_nan))
    bounds = pc.min_max(keys)
    lower, upper = bounds["min"].as_py(), bounds["max"].as_py()
    return Zone(fragment_id, start, stop, lower, upper, int(values.null_count), nan_count, lower is not None)

"""Find the moments at which the clocks of a time zone show given times.

The process that decodes raw files loads the source code of this module, too: see `maintenance/ingest/decoding`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

__all__ = ["moments_of"]


def moments_of(clocks: pa.Array, time_zone: str) -> pa.Array:
    """Return the moments, in UTC, at which dates begin, or at which a clock in the time zone shows these timestamps.

    A time that comes twice is the earlier moment. A time that a change of the clock skips is read with the offset
    before the change, as Java reads it.
    """
    shown = clocks if pt.is_timestamp(clocks.type) else clocks.cast(pa.timestamp("us"))
    unit = shown.type.unit
    near = pc.assume_timezone(shown, time_zone, ambiguous="earliest", nonexistent="earliest")
    utc = near.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit))
    ahead = pc.subtract(pc.local_timestamp(near), utc)
    return pc.assume_timezone(pc.subtract(shown, ahead), "UTC")

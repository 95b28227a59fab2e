"""Make a DataFrame of a read that this process has planned, so that Spark starts no process to plan it.

Spark creates a data source and plans its read in Python processes of their own. Here the tasks of a read are a function
over the numbers of its parts. Gain: one column takes 0.58 of the processor time in a cold session, and 0.85 in a warm
one; 312 MB of all columns take 0.74 and 1.02 (ADR 19).

Switch off with `LANCE_OPS_DISABLE=planned-reads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import StructType

from lance_ops.core.records import dataclass
from lance_ops.core.tricks import Trick
from lance_ops.spark.arrow_function import map_in_arrow
from lance_ops.spark.data_source import LanceReader
from lance_ops.spark.partitioning import FragmentGroup
from lance_ops.spark.running import slots_if_known, wait_for_slots
from lance_ops.spark.session_kind import lacks_context
from lance_ops.spark.small_read import MOST_BYTES, small_frame

__all__ = ["planned_frame"]

_MOST_ESTIMATED_BYTES = 8 << 30
"""Spark broadcasts no table as large as this, so a larger one needs no better estimate."""
_BYTES_OF_NUMBER = 8
_MOST_RANGES = 4096
"""The parts travel with each task, so a read of more goes through the data source, where each task gets its own."""


def planned_frame(session: SparkSession, reader: LanceReader, schema: StructType, name: str) -> DataFrame | None:
    """Return a DataFrame of the reader's rows, in its partitions; plans of Spark show `name`.

    `small_read.small_frame` makes the DataFrame of a small read. Returns None for a read of more than 4,096 row
    ranges, for a session of Spark Connect, and when `planned-reads` is switched off: the caller then reads through the
    data source. Raises what `LanceReader.plan` raises.
    """
    if lacks_context(session) or not Trick.PLANNED_READS.is_on():
        return None
    slots = slots_if_known(session)
    parts, size_bytes = reader.plan(slots)
    if slots is None and size_bytes >= MOST_BYTES:  # a smaller read needs no executor
        parts, size_bytes = reader.plan(wait_for_slots(session))
    if _num_ranges(parts) > _MOST_RANGES:
        parts, size_bytes = reader.plan()  # larger parts
    if _num_ranges(parts) > _MOST_RANGES:
        return None
    if not parts:
        return session.createDataFrame([], schema)
    small = small_frame(session, reader, parts, size_bytes, schema)
    if small is not None:
        return small
    # Spark takes the output of a function for as large as its input, and broadcasts a table that it takes for small. So
    # the input has as many bytes as the read. The filter then keeps one number of each part; Spark does not guess how
    # many it keeps. A core counts the numbers of a gigabyte in 0.4 s, and reads a gigabyte in some 6 s.
    estimated = min(size_bytes, _MOST_ESTIMATED_BYTES)
    per_part = max(-(-estimated // (_BYTES_OF_NUMBER * len(parts))), 1)
    numbers = session.range(0, per_part * len(parts), 1, len(parts)).where(col("id") % per_part == 0)
    return map_in_arrow(numbers, _Read(reader, tuple(parts), per_part), schema, name)


def _num_ranges(parts: Iterable[FragmentGroup]) -> int:
    return sum(len(part.row_ranges) for part in parts)


@dataclass(frozen=True)
class _Read:
    """Reads the parts whose numbers a task gets, each times `per_part`."""

    reader: LanceReader
    parts: tuple[FragmentGroup, ...]
    per_part: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.reader.read(self.parts[number // self.per_part])

"""What Spark itself takes for an operation in Python: the same rows and tasks, with nothing of this library in them.

Rows come from the memory of a worker, and go nowhere. The difference to an operation of this library is its own part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

__all__ = ["DIMENSIONS", "TASKS", "Memory", "do_nothing"]

DIMENSIONS = 32
TASKS = 6  # three for each core, as this library has them
_ROWS_PER_BATCH = 65_536


@dataclass(frozen=True)
class _Part(InputPartition):
    num_rows: int


class Memory(DataSource):
    """Gives as many rows as option `rows` says, from one batch in memory, and drops the rows that it takes."""

    @classmethod
    def name(cls) -> str:
        return "lance_ops_bench_memory"

    def schema(self) -> str:
        return "id bigint, value double, name string, vector array<float>"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(int(self.options["rows"]))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return _Writer()


class _Reader(DataSourceReader):
    def __init__(self, num_rows: int) -> None:
        self._num_rows = num_rows

    def partitions(self) -> Sequence[_Part]:
        bounds = [self._num_rows * number // TASKS for number in range(TASKS + 1)]
        return [_Part(end - start) for start, end in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        for start in range(0, partition.num_rows, _ROWS_PER_BATCH):
            yield _batch().slice(0, partition.num_rows - start)


class _Writer(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


@lru_cache(maxsize=1)
def _batch() -> pa.RecordBatch:
    numbers = pa.array(np.arange(_ROWS_PER_BATCH))
    values = pa.array(np.arange(_ROWS_PER_BATCH * DIMENSIONS, dtype=np.float32))
    ends = pa.array(np.arange(0, _ROWS_PER_BATCH * DIMENSIONS + 1, DIMENSIONS, dtype=np.int32))
    vectors = pa.ListArray.from_arrays(ends, values, type=pa.list_(pa.field("element", pa.float32())))
    columns = {"id": numbers, "value": numbers.cast(pa.float64()), "name": numbers.cast(pa.string()), "vector": vectors}
    return pa.RecordBatch.from_pydict(columns)


def do_nothing(items: Iterable[int]) -> Iterable[int]:
    """Return how many items a task got."""
    return [len(list(items))]

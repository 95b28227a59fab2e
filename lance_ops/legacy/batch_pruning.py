"""Find the rows of 0.1 data files that a predicate may match, by the statistics of their batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pyarrow as pa

from lance_ops.core.predicate import ColumnStats, Predicate
from lance_ops.core.schema import Field
from lance_ops.file import FileReader
from lance_ops.file.v0_1 import stats_of_batch

__all__ = ["rows_that_may_match"]

Run = tuple[int, int]
"""The first row of a run, and the row behind its last."""


def rows_that_may_match(
    reader: FileReader, fields: Mapping[str, Field], predicate: Predicate, start: int, stop: int
) -> list[Run]:
    """Return the runs of rows in `[start, stop)` of a 0.1 file whose batches the predicate may match.

    `fields` are the predicate's columns that the file has. If no column has statistics, all rows may match.
    """
    statistics_by_column: dict[str, tuple[Field, pa.StructArray]] = {}
    for name, field in fields.items():
        statistics = reader.batch_statistics(field.id)
        if statistics is not None:
            statistics_by_column[name] = field, statistics
    if not statistics_by_column:
        return [(start, stop)] if start < stop else []
    offsets = reader.batch_offsets()
    runs: list[Run] = []
    for batch, (first, last) in enumerate(pairwise(offsets)):
        first, last = max(first, start), min(last, stop)
        if first < last and predicate.may_match(_stats(statistics_by_column, batch, offsets)):
            if runs and runs[-1][1] == first:
                first = runs.pop()[0]
            runs.append((first, last))
    return runs


def _stats(
    statistics_by_column: Mapping[str, tuple[Field, pa.StructArray]], batch: int, offsets: Sequence[int]
) -> dict[str, ColumnStats]:
    num_rows = offsets[batch + 1] - offsets[batch]
    return {
        name: stats_of_batch(statistics[batch], field.arrow_type, field.nullable, num_rows)
        for name, (field, statistics) in statistics_by_column.items()
    }

"""Which rows of legacy data files a predicate may match, by the statistics that those files hold of their batches."""

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


def rows_that_may_match(
    reader: FileReader, fields: Mapping[str, Field], predicate: Predicate, start: int, stop: int
) -> list[Run]:
    """Return the runs of rows in `[start, stop)` of a 0.1 file whose batches the predicate may match.

    `fields` are those of the predicate's columns that the file holds; without any statistics, all rows may.
    """
    known: dict[str, tuple[Field, pa.StructArray]] = {}
    for name, field in fields.items():
        statistics = reader.batch_statistics(field.id)
        if statistics is not None:
            known[name] = field, statistics
    if not known:
        return [(start, stop)] if start < stop else []
    offsets = reader.batch_offsets()
    runs: list[Run] = []
    for batch, (first, last) in enumerate(pairwise(offsets)):
        first, last = max(first, start), min(last, stop)
        if first < last and predicate.may_match(_stats(known, batch, offsets)):
            if runs and runs[-1][1] == first:
                first = runs.pop()[0]
            runs.append((first, last))
    return runs


def _stats(
    known: Mapping[str, tuple[Field, pa.StructArray]], batch: int, offsets: Sequence[int]
) -> dict[str, ColumnStats]:
    num_rows = offsets[batch + 1] - offsets[batch]
    return {
        name: stats_of_batch(statistics[batch], field.arrow_type, field.nullable, num_rows)
        for name, (field, statistics) in known.items()
    }

"""Read the keys that a verb is given as files or as a dataset, and find the rows that have one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lance_ops.api import LanceDataset, dataset
from lance_ops.core.errors import SchemaMismatch
from lance_ops.maintenance.ingest import RawReader, found_file

__all__ = ["matching_rows", "read_keys"]

_MOST_SHOWN = 5


def read_keys(data: LanceDataset, files: Sequence[str], on: tuple[str, ...]) -> pa.Table:
    """Return the distinct keys of raw files or of datasets (`….lance`), in the types of the table.

    Raises `SchemaMismatch` for a file without a column of the key, and `RawFileRefused` for one that cannot be read.
    """
    wanted = pa.schema([data.schema.field(name) for name in on])
    parts = [wanted.empty_table()]
    for file in files:
        for batch in _batches(file, on):
            lacking = [name for name in on if name not in batch.schema.names]
            if lacking:
                raise SchemaMismatch(
                    f"{file} has no column {lacking[0]!r}, which is in the key: rename it, or change on"
                )
            try:
                parts.append(pa.Table.from_batches([batch]).select(list(on)).cast(wanted))
            except pa.ArrowException as error:
                raise SchemaMismatch(f"{file}: its keys do not fit the columns {', '.join(on)}: {error}") from error
    keys = pa.concat_tables(parts)
    distinct: pa.Table = keys.group_by(list(on)).aggregate([]).select(list(on)).cast(wanted)
    return distinct


def matching_rows(data: LanceDataset, files: Sequence[str], on: tuple[str, ...]) -> tuple[int, pa.Table]:
    """Return how many rows have one of the keys, and the keys of the first such rows. The key columns are read."""
    keys = read_keys(data, files, on)
    num_rows = 0
    first = [keys.slice(0, 0)]
    for batch in data.to_batches(list(on)):
        found = pa.Table.from_batches([batch]).join(keys, list(on), join_type="left semi")
        if num_rows < _MOST_SHOWN:
            first.append(found.select(list(on)).cast(keys.schema))
        num_rows += found.num_rows
    return num_rows, pa.concat_tables(first).slice(0, _MOST_SHOWN)


def _batches(file: str, on: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    if file.rstrip("/").endswith(".lance"):
        yield from dataset(file).to_batches(list(on))
        return
    with RawReader({}) as reader:
        yield from reader.batches(found_file(file, {}))

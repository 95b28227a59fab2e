"""Read the keys that a verb is given as files or as a dataset, and find the rows that have one of them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.api import LanceDataset
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.records import dataclass
from lance_ops.verbs.sources import source_batches

__all__ = ["MatchedKeys", "match_keys", "read_keys"]

_MOST_SHOWN = 5
_ROWS = "rows of the source"


@dataclass(frozen=True)
class MatchedKeys:
    """How rows of a source meet a table by key: rows of the table with a key of the source, and the source's others.

    `first` holds the keys of the first such rows of the table. `num_unmatched_rows` is the number of other rows of the
    table for which the condition of `match_keys` is true, and 0 without a condition.
    """

    num_source_rows: int
    num_matched_rows: int
    num_new_rows: int
    first: pa.Table
    num_unmatched_rows: int = 0


def read_keys(data: LanceDataset, files: Sequence[str], on: tuple[str, ...]) -> pa.Table:
    """Return the distinct keys of raw files or of datasets (`….lance`), in the types of the table.

    Raises `InvalidInput` for a column that the table lacks, `SchemaMismatch` for a file that lacks one, and
    `RawFileRefused` for a file that cannot be read.
    """
    return _counted_keys(data, files, on).select(list(on))


def match_keys(
    data: LanceDataset, files: Sequence[str], on: tuple[str, ...], unmatched_where: str | None = None
) -> MatchedKeys:
    """Count the rows that have one of the keys, and the rows of the source whose key no row has.

    With `unmatched_where`, a condition in SQL, also count the rows of the table that meet it and have none of the keys.
    This process reads the key columns of the table, without tasks, and holds the source's distinct keys.
    """
    counted = _counted_keys(data, files, on)
    keys = counted.select(list(on))
    num_rows = 0
    first, matched = [keys.slice(0, 0)], [keys.slice(0, 0)]
    for batch in data.to_batches(list(on)):
        found = pa.Table.from_batches([batch]).join(keys, list(on), join_type="left semi")
        if found.num_rows:
            if num_rows < _MOST_SHOWN:
                first.append(found.select(list(on)).cast(keys.schema))
            matched.append(_distinct(found, on).cast(keys.schema))
        num_rows += found.num_rows
    new = counted.join(_distinct(pa.concat_tables(matched), on), list(on), join_type="left anti")
    shown = pa.concat_tables(first).slice(0, _MOST_SHOWN)
    num_unmatched = 0
    if unmatched_where is not None:
        for batch in data.to_batches(list(on), filter=unmatched_where):
            num_unmatched += pa.Table.from_batches([batch]).join(keys, list(on), join_type="left anti").num_rows
    return MatchedKeys(_total(counted), num_rows, _total(new), shown, num_unmatched)


def _counted_keys(data: LanceDataset, files: Sequence[str], on: tuple[str, ...]) -> pa.Table:
    """Return the distinct keys, each with the number of rows that have it."""
    names = [data.snapshot.schema.field(name).name for name in on]
    wanted = pa.schema([data.schema.field(name) for name in names])
    parts = [wanted.empty_table()]
    for file in files:
        for batch in source_batches(data, file, on):
            lacking = [name for name in on if name not in batch.schema.names]
            if lacking:
                raise SchemaMismatch(
                    f"{file} has no column {lacking[0]!r}, which is in the key: rename it, or change on"
                )
            try:
                parts.append(pa.Table.from_batches([batch]).select(list(on)).cast(wanted))
            except pa.ArrowException as error:
                raise SchemaMismatch(f"{file}: its keys do not fit the columns {', '.join(on)}: {error}") from error
    keys: pa.Table = pa.concat_tables(parts).group_by(list(on)).aggregate([([], "count_all")])
    return keys.rename_columns([_ROWS if name == "count_all" else name for name in keys.schema.names])


def _distinct(keys: pa.Table, on: tuple[str, ...]) -> pa.Table:
    return keys.group_by(list(on)).aggregate([]).select(list(on))


def _total(counted: pa.Table) -> int:
    return int(pc.sum(counted[_ROWS]).as_py() or 0)

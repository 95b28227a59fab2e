"""Read the keys that a verb is given as files or as a dataset, and find the rows that have one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.api import LanceDataset
from lance_ops.core.errors import SchemaMismatch
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_ADDRESS, ScanRequest, take_addresses
from lance_ops.verbs.contract import Section
from lance_ops.verbs.sections import SAMPLE_ROWS, sample_section, sample_title, short_columns
from lance_ops.verbs.sources import source_rows

__all__ = ["FirstRows", "MatchedKeys", "match_keys", "read_keys", "rows_with_keys"]

_ROWS = "rows of the source"


@dataclass(frozen=True)
class FirstRows:
    """How many rows of a table were found, and the addresses of the first of them."""

    count: int
    first: Uint64Array

    @classmethod
    def among(cls, parts: Iterator[pa.Table]) -> FirstRows:
        """Count the rows of tables with a column of addresses; a join does not keep their order."""
        count, first = 0, np.array([], np.uint64)
        for part in parts:
            if len(first) < SAMPLE_ROWS:
                first = np.append(first, np.sort(part[ROW_ADDRESS].to_numpy())[: SAMPLE_ROWS - len(first)])
            count += part.num_rows
        return cls(count, first)

    def rows(self, data: LanceDataset, columns: Sequence[str]) -> pa.Table:
        """Return these columns of the first rows."""
        return take_addresses(data.snapshot, self.first, ScanRequest(data.snapshot.schema.project(list(columns))))

    def sections(self, data: LanceDataset, title: str, on: Sequence[str]) -> list[Section]:
        """Return a section of the first rows, which shows the columns `on`; none without rows."""
        if not self.count:
            return []
        shown = self.rows(data, short_columns(data.schema, wanted=on))
        return [sample_section(sample_title(title, self.count), shown)]


@dataclass(frozen=True)
class MatchedKeys:
    """How rows of a source meet a table by key: rows of the table with a key of the source, and the source's others.

    `unmatched` are the other rows of the table for which the condition of `match_keys` is true; none without one.
    """

    num_source_rows: int
    num_new_rows: int
    matched: FirstRows
    unmatched: FirstRows


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
    seen = [keys.slice(0, 0)]

    def matched() -> Iterator[pa.Table]:
        for batch in data.to_batches(list(on), with_row_address=True):
            found = pa.Table.from_batches([batch]).join(keys, list(on), join_type="left semi")
            if found.num_rows:
                seen.append(_distinct(found, on).cast(keys.schema))
                yield found

    def unmatched(condition: str) -> Iterator[pa.Table]:
        for batch in data.to_batches(list(on), filter=condition, with_row_address=True):
            yield pa.Table.from_batches([batch]).join(keys, list(on), join_type="left anti")

    found = FirstRows.among(matched())
    new = counted.join(_distinct(pa.concat_tables(seen), on), list(on), join_type="left anti")
    others = FirstRows.among(iter(()) if unmatched_where is None else unmatched(unmatched_where))
    return MatchedKeys(_total(counted), _total(new), found, others)


def rows_with_keys(data: LanceDataset, files: Sequence[str], keys: pa.Table) -> pa.Table:
    """Return the first rows of the source that have one of a few keys, as many as there are different keys."""
    on, found = keys.schema.names, list[pa.Table]()
    missing = _distinct(keys, tuple(on)).num_rows
    for given in (rows for file in files for rows in source_rows(data, file)):
        places = given.select(on).cast(keys.schema).append_column(_ROWS, pa.array(np.arange(len(given))))
        hits = np.sort(places.join(keys, on, join_type="left semi")[_ROWS].to_numpy())
        if len(hits):
            found.append(given.take(hits[:missing]))
            missing -= len(found[-1])
        if not missing:
            break
    return pa.concat_tables(found, promote_options="permissive") if found else keys.slice(0, 0)


def _counted_keys(data: LanceDataset, files: Sequence[str], on: tuple[str, ...]) -> pa.Table:
    """Return the distinct keys, each with the number of rows that have it."""
    names = [data.snapshot.schema.field(name).name for name in on]
    wanted = pa.schema([data.schema.field(name) for name in names])
    parts = [wanted.empty_table()]
    for file in files:
        for rows in source_rows(data, file, names):
            lacking = [name for name in on if name not in rows.schema.names]
            if lacking:
                raise SchemaMismatch(
                    f"{file} has no column {lacking[0]!r}, which is in the key: rename it, or change on"
                )
            try:
                parts.append(rows.select(list(on)).cast(wanted))
            except pa.ArrowException as error:
                raise SchemaMismatch(f"{file}: its keys do not fit the columns {', '.join(on)}: {error}") from error
    keys: pa.Table = pa.concat_tables(parts).group_by(list(on)).aggregate([([], "count_all")])
    return keys.rename_columns([_ROWS if name == "count_all" else name for name in keys.schema.names])


def _distinct(keys: pa.Table, on: tuple[str, ...]) -> pa.Table:
    return keys.group_by(list(on)).aggregate([]).select(list(on))


def _total(counted: pa.Table) -> int:
    return int(pc.sum(counted[_ROWS]).as_py() or 0)

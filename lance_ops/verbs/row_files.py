"""Look at raw files whose rows name rows of a table by `_rowaddr` or `_rowid`, and have values for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from lance_ops import changing
from lance_ops.api import LanceDataset
from lance_ops.core.addresses import fragment_of
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule
from lance_ops.maintenance.ingest import RawReader, RowFitting, found_file, plain_schema, unified_raw_schema
from lance_ops.reading import ROW_ADDRESS, ROW_ID, ScanRequest, take_addresses
from lance_ops.table import Fragment
from lance_ops.verbs.sources import is_dataset
from lance_ops.writing import conform_to_schema

__all__ = ["RowFiles", "look_at_row_files"]


@dataclass(frozen=True)
class RowFiles:
    """What raw files have: the first values of their columns, and the addresses of all rows that they name."""

    first: pa.Table
    addresses: Uint64Array
    size_bytes: int

    @property
    def values(self) -> pa.Schema:
        """The columns of values."""
        return self.first.schema

    def fragments(self, data: LanceDataset) -> list[Fragment]:
        """Return the fragments that have a named row."""
        known = data.snapshot.fragments_by_id
        return [known[int(fragment_id)] for fragment_id in np.unique(fragment_of(self.addresses))]

    def first_rows(self, data: LanceDataset, columns: Sequence[str], values: Sequence[str]) -> pa.Table:
        """Return columns of the table in the first named rows, and beside them these values of the files."""
        schema = data.snapshot.schema.project(list(columns))
        rows = take_addresses(data.snapshot, self.addresses[: len(self.first)], ScanRequest(schema))
        for name in values:
            rows = rows.append_column(f"{name} (new)" if name in data.schema.names else name, self.first[name])
        return rows


def look_at_row_files(data: LanceDataset, files: Sequence[str], num_first: int) -> RowFiles:
    """Read the files in this process, which holds 8 bytes for each of their rows, and find the rows that they name.

    A column of the table is read in its type there. Raises `InvalidInput` for a dataset, for files without a column of
    keys or without another one, and for a key that names no live row, or a row that another key names, too;
    `SchemaMismatch` for a file that lacks a column of the others, and for values that do not fit the column; and
    `RawFileRefused` for a file that cannot be read.
    """
    stored = next((file for file in files if is_dataset(file)), None)
    if stored is not None:
        raise InvalidInput(f"{stored} is a dataset, and no column of it names rows: merge it by key instead")
    found = [found_file(file, {}) for file in files]
    schema = unified_raw_schema(found, {}, case_rule=CaseRule.SENSITIVE)
    key, names = changing.key_and_values(schema.names)
    if key is None or not names:
        lacking = f"no column {ROW_ADDRESS} or {ROW_ID} that names rows" if key is None else "no column of values"
        raise InvalidInput(f"{files[0]} has {lacking}; it has {', '.join(schema.names)}")
    known = plain_schema(data.snapshot.schema).append(pa.field(key, pa.uint64()))
    fitting = RowFitting.exact(schema, known)
    wanted = pa.schema([fitting.table.field(name) for name in (key, *names)])
    keys: list[pa.Array] = [pa.array([], pa.uint64())]
    first = wanted.empty_table()
    with RawReader({}) as reader:
        for batch in chain.from_iterable(fitting.rows(file, reader) for file in found):
            rows = conform_to_schema(batch.select(wanted.names), wanted)
            keys += rows[key].chunks
            if len(first) < num_first:
                first = pa.concat_tables([first, rows.slice(0, num_first - len(first))])
    addresses = changing.named_rows(data.snapshot, pa.chunked_array(keys), by_id=key == ROW_ID)
    return RowFiles(first.select(list(names)), addresses, sum(file.size_bytes for file in found))

"""Check the sorted rows of a B-tree index while they are read: their order, and the bounds that page_lookup states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import CorruptFile
from lance_ops.indices.btree.layout import IDS, VALUES
from lance_ops.indices.btree.page_lookup import PageLookup
from lance_ops.indices.sort_keys import sort_keys

__all__ = ["checked_pages"]


def checked_pages(
    batches: Iterable[pa.RecordBatch], num_rows: int, lookup: PageLookup, where: str
) -> Iterator[pa.RecordBatch]:
    """Yield page_data's batches; raise `CorruptFile` at the first row that is out of order or not as page_lookup says.

    `where` names page_data in errors.
    """
    row, num_nulls = 0, 0
    last: pa.Array | None = None
    for batch in batches:
        keys = sort_keys(batch.column(0))
        _check_order(keys if last is None else pa.concat_arrays([last, keys]), row, where)
        _check_bounds(keys, row, num_rows, lookup, where)
        if batch.column(1).null_count:
            raise CorruptFile(where, IDS, "a row has no address")
        num_nulls += keys.null_count
        row += len(keys)
        last = keys.slice(len(keys) - 1) if len(keys) else last
        yield batch
    if num_nulls != lookup.num_nulls:
        raise CorruptFile(where, VALUES, f"{num_nulls} nulls where page_lookup has {lookup.num_nulls}")


def _check_order(keys: pa.Array, row: int, where: str) -> None:
    values = keys.slice(keys.null_count)
    if values.null_count:
        raise CorruptFile(where, VALUES, f"a null after a value, behind row {row}")
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    if len(values) > 1:
        ascends = pc.less_equal(values.slice(0, len(values) - 1), values.slice(1))
        if not pc.all(ascends).as_py():
            raise CorruptFile(where, VALUES, f"rows out of order, behind row {row}")


def _check_bounds(keys: pa.Array, row: int, num_rows: int, lookup: PageLookup, where: str) -> None:
    """Compare the first and last row of each page that begins or ends in these keys, which begin at `row`."""
    page_rows, end = lookup.page_rows, row + len(keys)
    begins = np.arange(-(-row // page_rows), -(-end // page_rows))
    last_page = (num_rows - 1) // page_rows
    ends = np.arange(row // page_rows, -(-end // page_rows))
    ends = ends[np.minimum((ends + 1) * page_rows, num_rows) <= end]
    for page, key in zip(begins.tolist(), _at(keys, begins * page_rows - row), strict=True):
        if page > last_page or page >= lookup.num_pages or key != lookup.mins[page]:
            raise CorruptFile(where, f"page {page}", "does not begin with the value that page_lookup states")
    positions = np.minimum((ends + 1) * page_rows, num_rows) - 1 - row
    for page, key in zip(ends.tolist(), _at(keys, positions), strict=True):
        if page >= lookup.num_pages or key != lookup.max_of(page):
            raise CorruptFile(where, f"page {page}", "does not end with the value that page_lookup states")


def _at(keys: pa.Array, positions: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[object]:
    found: list[object] = keys.take(pa.array(positions)).to_pylist()
    return found

"""Draw random rows of a table, with few reads.

Up to `max_takes` rows are drawn one by one. More rows are drawn as `max_takes` runs of neighbouring rows, spread over
the table. A run costs hardly more to read than a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from lance_ops.api import LanceDataset, dataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Int64Array
from lance_ops.reading import ROW_OFFSET

__all__ = ["maybe_sample"]


def maybe_sample(
    dataset: str | Path | LanceDataset,
    n: int,
    columns: Sequence[str] | Mapping[str, str] | str,
    batch_size: int = 10240,
    max_takes: int = 2048,
    filt: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield `n` different rows in batches, or all rows if there are no more than `n`.

    With a filter, `n` of the matching rows are yielded; their positions are held in memory. `numpy.random.seed` makes
    the sample repeatable, and for up to `max_takes` rows without a filter it is the reference's. Raises `InvalidInput`
    for a negative `n`, for a `batch_size` or `max_takes` below 1, and what a scan raises.
    """
    for name, value in (("n", n), ("batch_size", batch_size), ("max_takes", max_takes)):
        least = 0 if name == "n" else 1
        if value < least:
            raise InvalidInput(f"{name} of a sample must be at least {least}, not {value}")
    source = _opened(dataset)
    chosen = [columns] if isinstance(columns, str) else columns
    return _sample(source, n, chosen, batch_size, max_takes, filt)


def _opened(source: str | Path | LanceDataset) -> LanceDataset:
    return dataset(source) if isinstance(source, str | Path) else source


def _sample(
    source: LanceDataset,
    n: int,
    columns: Sequence[str] | Mapping[str, str],
    batch_size: int,
    max_takes: int,
    filt: str | None,
) -> Iterator[pa.RecordBatch]:
    num_rows = source.count_rows()
    if n >= num_rows:
        yield from source.to_batches(columns=columns, batch_size=batch_size, filter=filt)
        return
    if filt is not None:
        matching = source.to_table(columns=[ROW_OFFSET], filter=filt)[ROW_OFFSET].to_numpy()
        positions = matching[_drawn(len(matching), min(n, len(matching)), max_takes)].astype(np.int64)
    else:
        positions = _drawn(num_rows, n, max_takes)
    for start in range(0, len(positions), batch_size):
        taken = source.take(positions[start : start + batch_size], columns=columns)
        yield from taken.combine_chunks().to_batches()


def _drawn(num_rows: int, n: int, max_takes: int) -> Int64Array:
    """Return `n` different positions of `num_rows`, in at most `max_takes` runs."""
    # The caller seeds numpy's global generator, as with the reference.
    if n <= max_takes:
        return np.random.choice(num_rows, n, replace=False)  # noqa: NPY002
    lengths, gaps = _evenly(n, max_takes), _evenly(num_rows - n, max_takes)
    firsts = np.cumsum(lengths + gaps) - (lengths + gaps)
    starts = firsts + np.random.randint(0, gaps + 1)  # noqa: NPY002
    return np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(n)


def _evenly(total: int, parts: int) -> Int64Array:
    """Return integers whose sum is `total` and which differ by one at most."""
    return np.diff(np.arange(parts + 1) * total // parts)

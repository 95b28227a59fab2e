"""Sort more rows than fit in memory: write sorted runs to the local disk and merge them.

Runs are Arrow IPC files in a temporary directory, read through a memory map one block at a time. More than `FAN_IN`
runs are first merged into longer ones, so that the blocks of one merge stay within the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from lance_ops.indices.row_order import FIRST_COLUMN, RowOrder
from lance_ops.indices.sorted_merge import merge_sorted

__all__ = ["DEFAULT_SORT_BYTES", "most_run_bytes", "sort_rows"]

DEFAULT_SORT_BYTES = 512 << 20

FAN_IN = 64

_LEAST_ROW_BYTES = 12
"""The sort counts at least this many bytes for a row, because to sort a short row takes more memory than the row."""

_LONGEST_RUN_BYTES = 1 << 30
"""An array of text with 32-bit offsets holds at most twice as many bytes."""


@contextmanager
def sort_rows(
    batches: Iterable[pa.RecordBatch], sort_bytes: int = DEFAULT_SORT_BYTES, order: RowOrder = FIRST_COLUMN
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Provide the rows in order; equal rows keep the order in which they came.

    `sort_bytes` bounds the memory. Rows that do not fit are in a local temporary directory until the context ends.
    """
    # While a run is sorted, memory holds the run before it, the run, its keys, and some 24 bytes a row that sort them,
    # with 24 more and a copy of the keys for each further column, of rows that tie. Then it holds the run twice.
    runs = map(order.sort, _gather(batches, most_run_bytes(sort_bytes)))
    first, second = next(runs, None), next(runs, None)
    if second is None:
        yield iter([] if first is None else [first])
        return
    with TemporaryDirectory(prefix="lance-ops-sort-") as directory:
        spill = _Spill(Path(directory), block_bytes=sort_bytes // FAN_IN // 4)
        paths = [spill.write([run]) for run in chain((first, second), runs)]
        del first, second
        while len(paths) > FAN_IN:
            groups = [paths[start : start + FAN_IN] for start in range(0, len(paths), FAN_IN)]
            paths = [spill.write(merge_sorted([spill.read(path) for path in group], order)) for group in groups]
        yield merge_sorted([spill.read(path) for path in paths], order)


class _Spill:
    """Writes and reads runs in a directory; each run is a file of blocks."""

    def __init__(self, directory: Path, block_bytes: int) -> None:
        self._names = (directory / f"{number}.arrow" for number in count())
        self._block_bytes = block_bytes

    def write(self, batches: Iterable[pa.RecordBatch]) -> Path:
        """Write one run; there is at least one batch."""
        path = next(self._names)
        stream = iter(batches)
        first = next(stream)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
            for batch in chain((first,), stream):
                block_rows = max(1, batch.num_rows * self._block_bytes // max(1, batch.nbytes))
                writer.write_table(pa.Table.from_batches([batch]), max_chunksize=block_rows)
        return path

    def read(self, path: Path) -> Iterator[pa.RecordBatch]:
        """Yield a run's blocks, then remove it."""
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
        path.unlink()


def most_run_bytes(sort_bytes: int) -> int:
    """Return how many bytes of rows a sort takes at once in `sort_bytes` of memory: it needs several times as much."""
    return min(sort_bytes // 5, _LONGEST_RUN_BYTES)


def _gather(batches: Iterable[pa.RecordBatch], run_bytes: int) -> Iterator[pa.RecordBatch]:
    """Join small batches up to a size, so that the runs are few and long."""
    gathered: list[pa.RecordBatch] = []
    gathered_bytes = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        gathered.append(batch)
        gathered_bytes += max(batch.nbytes, _LEAST_ROW_BYTES * batch.num_rows)
        if gathered_bytes >= run_bytes:
            yield _joined(gathered)
            gathered_bytes = 0
    if gathered:
        yield _joined(gathered)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of all batches, and let the batches go."""
    joined = pa.concat_batches(batches)
    batches.clear()
    return joined

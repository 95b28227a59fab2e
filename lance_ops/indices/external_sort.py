"""Sort more rows than fit in memory: sorted runs on the local disk, merged.

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

__all__ = ["DEFAULT_SORT_BYTES", "sort_rows"]

DEFAULT_SORT_BYTES = 512 << 20

FAN_IN = 64

_LONGEST_RUN_BYTES = 1 << 30
"""Text columns with 32-bit offsets cannot hold more than twice this in one array."""


@contextmanager
def sort_rows(
    batches: Iterable[pa.RecordBatch], sort_bytes: int = DEFAULT_SORT_BYTES, order: RowOrder = FIRST_COLUMN
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Provide rows in order, ties in the order they came.

    `sort_bytes` bounds the memory; what does not fit is in the local temporary directory until the context ends.
    """
    # A run exists twice while it is sorted, beside its keys and indices, and the run before it is still held.
    runs = map(order.sort, _gather(batches, min(sort_bytes // 5, _LONGEST_RUN_BYTES)))
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
    """Runs in a directory, each a file of blocks."""

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


def _gather(batches: Iterable[pa.RecordBatch], run_bytes: int) -> Iterator[pa.RecordBatch]:
    """Join batches up to a size, so that few long runs come of many small batches."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= run_bytes:
            yield pa.concat_batches(held)
            held, held_bytes = [], 0
    if held:
        yield pa.concat_batches(held)

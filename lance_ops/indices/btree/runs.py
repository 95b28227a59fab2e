"""Sorted runs of a B-tree index in files of their own: write them, merge ranges of them, and join them to an index.

A run is a file like page_data. Its summary has the columns of page_lookup: the first and the last value of every page.
Runs whose rows follow each other, and which end with a whole page, are parts of an index: their file pages are copied
one after the other.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_ops.core.arrow import numbers_of
from lance_ops.core.errors import CorruptFile, LanceOpsError
from lance_ops.file import FileReader
from lance_ops.indices.btree.layout import (
    IDS,
    MAX,
    MIN,
    NULL_COUNT,
    PAGE_DATA,
    VALUES,
    PageStatistics,
    data_rows,
    data_schema,
    deleted_on_failure,
    lookup_of,
    new_file,
    write_lookup,
    written,
)
from lance_ops.indices.btree.merge_plan import RunSample, plan_shares
from lance_ops.indices.distributed import MergeShare, PartialIndex, PartialSlice
from lance_ops.indices.sort_keys import sort_keys
from lance_ops.indices.sorted_merge import merge_sorted
from lance_ops.store import Store
from lance_ops.table import IndexFile

__all__ = ["join_runs", "merge_runs", "plan_run_merge", "write_run"]

_MERGE_BYTES = 64 << 20
"""Memory of the rows that are read from all runs of a merge at a time."""

_LEAST_BLOCK_ROWS, _MOST_BLOCK_ROWS = 256, 1 << 16


def write_run(rows: Iterable[pa.RecordBatch], value_type: pa.DataType, page_rows: int, scratch: Store) -> PartialIndex:
    """Write sorted rows of page_data as a run under a new name; a failure leaves no file behind."""
    pages, size_bytes, path = PageStatistics(value_type, page_rows), 0, f"{uuid.uuid4()}.lance"
    with new_file(scratch, path, data_schema(value_type)) as writer:
        for batch in rows:
            size_bytes += batch.nbytes
            writer.write_batch(pages.record(batch))
    return PartialIndex(writer.num_rows, pages.lookup(), path, size_bytes)


def plan_run_merge(runs: Sequence[PartialIndex], page_rows: int, share_rows: int) -> Iterator[MergeShare]:
    """Yield the shares that merge all runs; nothing if the runs are parts of an index as they are."""
    if _are_parts(runs, page_rows):
        return
    runs = [run for run in runs if run.num_rows]
    row_bytes = sum(run.decoded_bytes for run in runs) // sum(run.num_rows for run in runs) + 1
    whole_pages = -(-share_rows // page_rows) * page_rows
    for share in plan_shares([_sample(run, page_rows) for run in runs], whole_pages):
        bounds = zip(runs, share.starts.tolist(), share.stops.tolist(), strict=True)
        slices = tuple(PartialSlice(run.path, start, stop) for run, start, stop in bounds if start < stop)
        yield MergeShare(slices, share.skip_rows, share.num_rows, row_bytes)


def merge_runs(share: MergeShare, value_type: pa.DataType, page_rows: int, scratch: Store) -> PartialIndex:
    """Merge a share's slices to a run; raise `CorruptFile` if they have too few rows."""
    at_once = _MERGE_BYTES // (share.row_bytes * max(len(share.slices), 1))
    block_rows = min(max(at_once, _LEAST_BLOCK_ROWS), _MOST_BLOCK_ROWS)
    opening = [scratch.begin_call(partial(FileReader, scratch, each.path, verifies=True)) for each in share.slices]
    readers = [opened() for opened in opening]
    streams = [_blocks(reader, each, block_rows) for reader, each in zip(readers, share.slices, strict=True)]
    rows = _section(merge_sorted(streams), share.skip_rows, share.num_rows)
    run = write_run(rows, value_type, page_rows, scratch)
    if run.num_rows != share.num_rows:
        scratch.delete(run.path)
        raise CorruptFile(scratch.uri, "runs", f"{run.num_rows} rows merged where there should be {share.num_rows}")
    return run


def join_runs(
    runs: Sequence[PartialIndex], value_type: pa.DataType, page_rows: int, scratch: Store, store: Store
) -> tuple[IndexFile, ...]:
    """Write the index whose parts are these runs: copy their pages, and delete each run then.

    A failure leaves no file of the index behind.
    """
    num_rows = sum(run.num_rows for run in runs)
    with new_file(store, PAGE_DATA, data_schema(value_type)) as writer:
        for run in runs:
            if run.num_rows:
                writer.append_file(FileReader(scratch, run.path, verifies=True))
            with suppress(LanceOpsError):  # the caller removes what is left; here it frees disk space and mapped memory
                scratch.delete(run.path)
        if writer.num_rows != num_rows or not _are_parts(runs, page_rows):
            raise CorruptFile(scratch.uri, "runs", f"{writer.num_rows} rows do not follow each other in whole pages")
    with deleted_on_failure(store, PAGE_DATA):
        empty = pa.nulls(0, value_type)
        mins, maxs = (pa.concat_arrays([empty, *(run.summary.column(name) for run in runs)]) for name in (MIN, MAX))
        num_nulls = sum(int(numbers_of(run.summary.column(NULL_COUNT)).sum()) for run in runs)
        lookup = lookup_of(mins, maxs, num_nulls, num_rows, page_rows)
        return written(writer), write_lookup(lookup, store)


def _sample(run: PartialIndex, page_rows: int) -> RunSample:
    """Return the keys of the first row of every page and of the last row."""
    keys, rows = run.summary.column(MIN), np.arange(0, run.num_rows, page_rows)
    if rows[-1] < run.num_rows - 1:
        lasts = run.summary.column(MAX)
        keys = pa.concat_arrays([keys, lasts.slice(len(lasts) - 1)])
        rows = np.append(rows, run.num_rows - 1)
    return RunSample(sort_keys(keys), rows, run.num_rows)


def _are_parts(runs: Sequence[PartialIndex], page_rows: int) -> bool:
    """Return whether the rows of the runs follow each other in order, all but the last run in whole pages."""
    filled = [run for run in runs if run.num_rows]
    if any(run.num_rows % page_rows for run in filled[:-1]):
        return False
    return all(not _is_after(first, second) for first, second in pairwise(filled))


def _is_after(first: PartialIndex, second: PartialIndex) -> bool:
    """Return whether the last row of one run comes after the first row of the next one."""
    lasts, firsts = first.summary.column(MAX), second.summary.column(MIN)
    last, begin = sort_keys(lasts.slice(len(lasts) - 1))[0], sort_keys(firsts.slice(0, 1))[0]
    if not last.is_valid:
        return False
    return not begin.is_valid or bool(last.as_py() > begin.as_py())


def _blocks(reader: FileReader, part: PartialSlice, block_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a slice; unlike `iter_batches`, which decodes megabytes at a time, hold one block."""
    schema = reader.schema.project([VALUES, IDS])
    for start in range(part.start, part.stop, block_rows):
        table = reader.read(schema, start, min(start + block_rows, part.stop))
        values, ids = (column.combine_chunks() for column in table.columns)
        yield data_rows(values, ids)


def _section(batches: Iterable[pa.RecordBatch], skip_rows: int, num_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield `num_rows` rows after the first `skip_rows`, or as many as there are."""
    for batch in batches:
        skipped = min(skip_rows, batch.num_rows)
        skip_rows -= skipped
        kept = min(num_rows, batch.num_rows - skipped)
        if kept:
            num_rows -= kept
            yield batch.slice(skipped, kept)
        if not num_rows:
            return

"""Tell whether a newer version holds the same rows for given keys: then a plan made on the older one is still valid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.api import LanceDataset, stored_files
from lance_ops.api.scanning import Filter
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.core.addresses import fragment_of
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.maintenance.health import compare_versions
from lance_ops.reading import ROW_ADDRESS
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot

__all__ = ["have_same_rows", "have_same_rows_by_tasks"]

_PLACE = "place in the batch"
_DIGEST_BYTES = 16
_BATCH_BYTES = 32 << 20


def have_same_rows(
    planned: LanceDataset, newest: LanceDataset, keys: pa.Table, unmatched_where: str | None = None
) -> bool:
    """Return whether both versions hold the same rows with these keys, in any order and in any fragments.

    With `unmatched_where`, a condition in SQL, the rows that meet it must be the same, too. Versions with other columns
    are not compared: then the result is false. Reads only fragments that are new, removed or changed, with all columns
    and the bytes of blobs, in this process. It holds one batch at a time.
    """
    if planned.schema != newest.schema:
        return False
    changes = compare_versions(planned.snapshot, newest.snapshot, versions=())
    changed = changes.fragments_changed
    before = _digest(planned, (*changes.fragments_removed, *changed), keys, unmatched_where)
    return before == _digest(newest, (*changes.fragments_added, *changed), keys, unmatched_where)


def _digest(
    data: LanceDataset, fragment_ids: Sequence[int], keys: pa.Table, unmatched_where: str | None
) -> tuple[int, int]:
    """Return the number of rows that matter in some fragments, and a sum of their digests."""
    count = total = 0
    for batch in _rows(data, fragment_ids, keys, unmatched_where):
        for row in batch.to_pylist():
            count += 1
            total += _digest_of(row)
    return count, total


def have_same_rows_by_tasks(
    planned: LanceDataset,
    newest: LanceDataset,
    files: Sequence[str],
    on: tuple[str, ...],
    runner: Runner,
    unmatched_where: str | None = None,
) -> bool:
    """Answer as `have_same_rows` does, for the keys of raw files or of a dataset. Tasks read keys and rows.

    They leave files beneath the table's `data`, which are removed.
    """
    if planned.schema != newest.schema:
        return False
    changes = compare_versions(planned.snapshot, newest.snapshot, versions=())
    changed = changes.fragments_changed
    if not (changed or changes.fragments_removed or changes.fragments_added):
        return True
    with stored_files(planned.snapshot, files, runner, on, keys=on) as source:

        def found(data: LanceDataset, fragment_ids: tuple[int, ...]) -> tuple[int, int]:
            counts = by_tasks.count_matches(
                data.snapshot,
                on,
                source,
                runner,
                unmatched=unmatched_where,
                fragment_ids=frozenset(fragment_ids),
                digest=_digest_at,
            )
            return counts.matched.count + counts.unmatched.count, counts.digest

        before = found(planned, (*changes.fragments_removed, *changed))
        return before == found(newest, (*changes.fragments_added, *changed))


def _digest_at(snapshot: Snapshot, addresses: Uint64Array) -> int:
    """Return the sum of the digests of the rows at these addresses."""
    if not len(addresses):
        return 0
    is_wanted = pc.field(ROW_ADDRESS).isin(pa.array(addresses))
    scanned = _whole_rows(LanceDataset.of(snapshot), fragment_of(addresses).tolist(), is_wanted)
    return sum(_digest_of(row) for batch in scanned for row in batch.to_pylist())


def _digest_of(row: object) -> int:
    return int.from_bytes(blake2b(repr(row).encode(), digest_size=_DIGEST_BYTES).digest(), "little")


def _rows(
    data: LanceDataset, fragment_ids: Sequence[int], keys: pa.Table, unmatched_where: str | None
) -> Iterator[pa.RecordBatch]:
    for batch in _whole_rows(data, fragment_ids):
        yield _chosen(batch, keys, "left semi")
    if unmatched_where is not None:
        for batch in _whole_rows(data, fragment_ids, unmatched_where):
            yield _chosen(batch, keys, "left anti")


def _whole_rows(data: LanceDataset, fragment_ids: Iterable[int], where: Filter = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some fragments with all columns, and blobs as bytes.

    The description of a blob is its place. Other bytes may take the same place, and a compaction moves the same bytes.
    """
    wanted = set(fragment_ids)
    fragments = [fragment for fragment in data.get_fragments() if fragment.fragment_id in wanted]
    if fragments:
        scanner = data.scanner(
            filter=where, fragments=fragments, blob_handling="all_binary", batch_size_bytes=_BATCH_BYTES
        )
        yield from scanner.to_batches()


def _chosen(batch: pa.RecordBatch, keys: pa.Table, join: str) -> pa.RecordBatch:
    """Return the rows of a batch that have one of the keys, or that have none of them."""
    names = keys.schema.names
    places = pa.Table.from_batches([batch]).select(names).append_column(_PLACE, pa.array(np.arange(batch.num_rows)))
    found = places.join(keys, names, join_type=join)[_PLACE].combine_chunks()
    return batch.take(found)

"""Tell whether a newer version holds the same rows for given keys: then a plan made on the older one is still valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from lance_ops.api import LanceDataset
from lance_ops.maintenance.health import compare_versions

__all__ = ["have_same_rows"]

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
            total += int.from_bytes(blake2b(repr(row).encode(), digest_size=_DIGEST_BYTES).digest(), "little")
    return count, total


def _rows(
    data: LanceDataset, fragment_ids: Sequence[int], keys: pa.Table, unmatched_where: str | None
) -> Iterator[pa.RecordBatch]:
    wanted = set(fragment_ids)
    fragments = [fragment for fragment in data.get_fragments() if fragment.fragment_id in wanted]
    if not fragments:
        return
    # the description of a blob is its place: other bytes may take the same place, and a compaction moves the same bytes
    read = partial(data.scanner, fragments=fragments, blob_handling="all_binary", batch_size_bytes=_BATCH_BYTES)
    for batch in read().to_batches():
        yield _chosen(batch, keys, "left semi")
    if unmatched_where is not None:
        for batch in read(filter=unmatched_where).to_batches():
            yield _chosen(batch, keys, "left anti")


def _chosen(batch: pa.RecordBatch, keys: pa.Table, join: str) -> pa.RecordBatch:
    """Return the rows of a batch that have one of the keys, or that have none of them."""
    names = keys.schema.names
    places = pa.Table.from_batches([batch]).select(names).append_column(_PLACE, pa.array(np.arange(batch.num_rows)))
    found = places.join(keys, names, join_type=join)[_PLACE].combine_chunks()
    return batch.take(found)

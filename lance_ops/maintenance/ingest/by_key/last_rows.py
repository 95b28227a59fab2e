"""Find the staged rows that a later row of the same key takes the place of."""

from __future__ import annotations

import numpy as np

from lance_ops.changing import SourceKeys
from lance_ops.indices import RowAddressSet
from lance_ops.maintenance.ingest.by_key.staged_rows import Bucket, bucket_rows, columns_of

__all__ = ["find_earlier_rows"]


def find_earlier_rows(bucket: Bucket) -> dict[int, bytes]:
    """Return by fragment the offsets of rows whose key a later row has, as serialized Roaring bitmaps."""
    table, addresses = bucket_rows(bucket, ())
    if not len(table):
        return {}
    keys = SourceKeys(columns_of(table, bucket.keys), bucket.keys)
    is_earlier = keys.last_row_of(keys.codes) != np.arange(len(table))
    found = RowAddressSet.from_addresses(addresses[is_earlier])
    return {fragment_id: offsets.serialize() for fragment_id, offsets in found.bitmaps.items()}

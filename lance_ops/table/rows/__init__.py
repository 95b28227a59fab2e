"""Row ids, row versions and row addresses: their sequences, the index by row id, and the map of rewritten rows."""

from lance_ops.table.rows.key_code_table import NO_CODE, KeyCodeTable
from lance_ops.table.rows.roaring import bitmap_of, decode_bitmap, decode_treemap, encode_bitmap, offsets_in
from lance_ops.table.rows.row_address_map import NewFragment, OldFragment, RewrittenGroup, RowAddressMap
from lance_ops.table.rows.row_id_index import RowIdIndex, build_row_id_index
from lance_ops.table.rows.row_id_runs import RowIds, RowVersions
from lance_ops.table.rows.row_sequences import (
    FIRST_VERSION,
    count_row_ids,
    decode_row_ids,
    decode_versions,
    encode_row_id_range,
    encode_row_ids,
    encode_uniform_versions,
    encode_versions,
)

__all__ = [
    "FIRST_VERSION",
    "NO_CODE",
    "KeyCodeTable",
    "NewFragment",
    "OldFragment",
    "RewrittenGroup",
    "RowAddressMap",
    "RowIdIndex",
    "RowIds",
    "RowVersions",
    "bitmap_of",
    "build_row_id_index",
    "count_row_ids",
    "decode_bitmap",
    "decode_row_ids",
    "decode_treemap",
    "decode_versions",
    "encode_bitmap",
    "encode_row_id_range",
    "encode_row_ids",
    "encode_uniform_versions",
    "encode_versions",
    "offsets_in",
]

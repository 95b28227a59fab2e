"""Row ids, row versions and row addresses: their sequences, the index by row id, and the map of rewritten rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.table.rows.key_code_table import NO_CODE, KeyCodeTable
    from lance_ops.table.rows.roaring import (
        bitmap_of,
        decode_bitmap,
        decode_treemap,
        encode_bitmap,
        encode_treemap,
        join_bitmaps,
        long_runs_in,
        offsets_in,
    )
    from lance_ops.table.rows.row_address_map import NewFragment, OldFragment, RewrittenGroup, RowAddressMap
    from lance_ops.table.rows.row_address_tree import decode_address_tree, encode_address_tree
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
    "decode_address_tree",
    "decode_bitmap",
    "decode_row_ids",
    "decode_treemap",
    "decode_versions",
    "encode_address_tree",
    "encode_bitmap",
    "encode_row_id_range",
    "encode_row_ids",
    "encode_treemap",
    "encode_uniform_versions",
    "encode_versions",
    "join_bitmaps",
    "long_runs_in",
    "offsets_in",
]

_MODULES = {
    "FIRST_VERSION": "row_sequences",
    "NO_CODE": "key_code_table",
    "KeyCodeTable": "key_code_table",
    "NewFragment": "row_address_map",
    "OldFragment": "row_address_map",
    "RewrittenGroup": "row_address_map",
    "RowAddressMap": "row_address_map",
    "RowIdIndex": "row_id_index",
    "RowIds": "row_id_runs",
    "RowVersions": "row_id_runs",
    "bitmap_of": "roaring",
    "build_row_id_index": "row_id_index",
    "count_row_ids": "row_sequences",
    "decode_address_tree": "row_address_tree",
    "decode_bitmap": "roaring",
    "decode_row_ids": "row_sequences",
    "decode_treemap": "roaring",
    "decode_versions": "row_sequences",
    "encode_address_tree": "row_address_tree",
    "encode_bitmap": "roaring",
    "encode_row_id_range": "row_sequences",
    "encode_treemap": "roaring",
    "encode_row_ids": "row_sequences",
    "encode_uniform_versions": "row_sequences",
    "encode_versions": "row_sequences",
    "join_bitmaps": "roaring",
    "long_runs_in": "roaring",
    "offsets_in": "roaring",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

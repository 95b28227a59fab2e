"""Find rows by value without reading the column. A new index type is a room here; `registry.py` says who must know it.

index_type_named("BTREE").train(rows, field, store.child(directory)) -> files      build an index
load_index(store, metadata).search(query) -> RowAddressSet                         find rows
.remap(address_map, store_out) -> files                 update rewritten rows
.merge(others, rows, store_out, ...) -> files           add new fragments

`distributed.py` has the contract of the same work in tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.indices.contract import (
        INDEX_ROW,
        INDEX_VALUE,
        IndexType,
        LoadedIndex,
        RowKey,
        TrainingBatches,
        claimed_fragments,
    )
    from lance_ops.indices.distributed import DistributedIndexType, MergeShare, PartialIndex
    from lance_ops.indices.external_sort import DEFAULT_SORT_BYTES, most_run_bytes, sort_rows
    from lance_ops.indices.nested_sort_keys import is_nested_sortable, nested_keys
    from lance_ops.indices.registry import (
        ALL_INDEX_TYPES,
        IndexConfig,
        IndexQuery,
        index_type_for,
        index_type_named,
        index_type_of,
        load_index,
    )
    from lance_ops.indices.remap_only import ALL_REMAP_ONLY_TYPES, RemapOnlyType, remap_only_type_of
    from lance_ops.indices.row_address_set import RowAddressSet
    from lance_ops.indices.row_order import Direction, RowOrder
    from lance_ops.indices.sort_keys import is_sortable
    from lance_ops.indices.sort_keys import sort_keys as keys_of

__all__ = [
    "ALL_INDEX_TYPES",
    "ALL_REMAP_ONLY_TYPES",
    "DEFAULT_SORT_BYTES",
    "INDEX_ROW",
    "INDEX_VALUE",
    "Direction",
    "DistributedIndexType",
    "IndexConfig",
    "IndexQuery",
    "IndexType",
    "LoadedIndex",
    "MergeShare",
    "PartialIndex",
    "RemapOnlyType",
    "RowAddressSet",
    "RowKey",
    "RowOrder",
    "TrainingBatches",
    "claimed_fragments",
    "index_type_for",
    "index_type_named",
    "index_type_of",
    "is_nested_sortable",
    "is_sortable",
    "keys_of",
    "load_index",
    "most_run_bytes",
    "nested_keys",
    "remap_only_type_of",
    "sort_rows",
]

_MODULES = {
    "ALL_REMAP_ONLY_TYPES": "remap_only",
    "ALL_INDEX_TYPES": "registry",
    "DEFAULT_SORT_BYTES": "external_sort",
    "INDEX_ROW": "contract",
    "INDEX_VALUE": "contract",
    "RemapOnlyType": "remap_only",
    "Direction": "row_order",
    "DistributedIndexType": "distributed",
    "IndexConfig": "registry",
    "IndexQuery": "registry",
    "IndexType": "contract",
    "LoadedIndex": "contract",
    "MergeShare": "distributed",
    "PartialIndex": "distributed",
    "RowAddressSet": "row_address_set",
    "RowKey": "contract",
    "RowOrder": "row_order",
    "TrainingBatches": "contract",
    "remap_only_type_of": "remap_only",
    "claimed_fragments": "contract",
    "index_type_for": "registry",
    "index_type_named": "registry",
    "index_type_of": "registry",
    "is_nested_sortable": "nested_sort_keys",
    "is_sortable": "sort_keys",
    "keys_of": "sort_keys:sort_keys",
    "load_index": "registry",
    "most_run_bytes": "external_sort",
    "nested_keys": "nested_sort_keys",
    "sort_rows": "external_sort",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

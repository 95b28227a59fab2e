"""The index types that this library only remaps, in one explicit tuple.

`transactions/manifest_changes/index_coverage.py` cannot import this room. It says which of these types keep the entries
of deleted rows, and how each type names rows in a table of stable row ids; tests compare.
"""

from __future__ import annotations

from lance_ops.indices.remap_only.remap_only_type import AddressColumn, RemapOnlyType
from lance_ops.indices.remap_only.remapped_addresses import (
    remap_address_trees,
    remap_single_addresses,
    remap_treemaps,
)
from lance_ops.table import IndexMetadata

__all__ = ["ALL_REMAP_ONLY_TYPES", "remap_only_type_of"]

_ADDRESSES_AT_ONCE = 1 << 20
_SETS_AT_ONCE = 64
"""The rows of a batch of sets. They are few, because each set may have a bit for each row of the table."""

ALL_REMAP_ONLY_TYPES: tuple[RemapOnlyType, ...] = (
    RemapOnlyType(
        "BitmapIndexDetails",
        0,
        {r"bitmap_page_lookup\.lance": AddressColumn("bitmaps", remap_address_trees, _SETS_AT_ONCE)},
    ),
    RemapOnlyType(
        "LabelListIndexDetails",
        1,
        {
            r"bitmap_page_lookup\.lance": AddressColumn(
                "bitmaps", remap_address_trees, _SETS_AT_ONCE, "lance:label_list_nulls"
            )
        },
    ),
    RemapOnlyType(
        "NGramIndexDetails",
        0,
        {r"ngram_postings\.lance": AddressColumn("posting_list", remap_treemaps, _SETS_AT_ONCE)},
    ),
    RemapOnlyType("BloomFilterIndexDetails", 0, {}),
    RemapOnlyType(
        "InvertedIndexDetails",
        2,
        # Postings refer to a document by its position in this file.
        {r"part_\d+_docs\.lance": AddressColumn("_rowid", remap_single_addresses, _ADDRESSES_AT_ONCE)},
        r"part_\d+_(tokens|invert)\.lance|metadata\.lance",
        keeps_entries_of_deleted_rows=True,
    ),
    RemapOnlyType(
        "VectorIndexDetails",
        2,
        # Partitions and graphs refer to a vector by its position in this file.
        {r"auxiliary\.idx": AddressColumn("_rowid", remap_single_addresses, _ADDRESSES_AT_ONCE)},
        r"index\.idx",
        keeps_entries_of_deleted_rows=True,
    ),
)


def remap_only_type_of(metadata: IndexMetadata) -> RemapOnlyType | None:
    """Return the type of a table's index; None if it is not one that this library only remaps."""
    name = metadata.details.type_name if metadata.details else None
    return next((each for each in ALL_REMAP_ONLY_TYPES if each.details_name == name), None)

"""The kinds of index that are carried, in one explicit tuple.

`transactions/manifest_changes/index_coverage.py`, which cannot import this room, names those that keep the entries of
deleted rows; a test compares both.
"""

from __future__ import annotations

from lance_ops.indices.carried.carried_kind import AddressColumn, CarriedKind
from lance_ops.indices.carried.moved_addresses import move_numbers, move_treemaps, move_trees
from lance_ops.table import IndexMetadata

__all__ = ["ALL_CARRIED_KINDS", "carried_kind_of"]

_ENTRIES = 1 << 20
_SETS = 64
"""Each may have a bit for each row of the table."""

ALL_CARRIED_KINDS: tuple[CarriedKind, ...] = (
    CarriedKind("BitmapIndexDetails", 0, {r"bitmap_page_lookup\.lance": AddressColumn("bitmaps", move_trees, _SETS)}),
    CarriedKind(
        "LabelListIndexDetails",
        1,
        {r"bitmap_page_lookup\.lance": AddressColumn("bitmaps", move_trees, _SETS, "lance:label_list_nulls")},
    ),
    CarriedKind(
        "NGramIndexDetails", 0, {r"ngram_postings\.lance": AddressColumn("posting_list", move_treemaps, _SETS)}
    ),
    CarriedKind("BloomFilterIndexDetails", 0, {}),
    CarriedKind(
        "InvertedIndexDetails",
        2,
        {r"part_\d+_docs\.lance": AddressColumn("_rowid", move_numbers, _ENTRIES)},  # postings count documents
        r"part_\d+_(tokens|invert)\.lance|metadata\.lance",
        keeps_deleted_rows=True,
    ),
    CarriedKind(
        "VectorIndexDetails",
        2,
        {r"auxiliary\.idx": AddressColumn("_rowid", move_numbers, _ENTRIES)},  # partitions and graphs count vectors
        r"index\.idx",
        keeps_deleted_rows=True,
    ),
)


def carried_kind_of(metadata: IndexMetadata) -> CarriedKind | None:
    """Return the kind of a table's index; None if it is not one that is carried."""
    name = metadata.details.type_name if metadata.details else None
    return next((kind for kind in ALL_CARRIED_KINDS if kind.details_name == name), None)

"""The index types, in one explicit tuple. A new one is a room beside `btree/` and a line in `ALL_INDEX_TYPES`."""

from __future__ import annotations

from typing import TypeAlias

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.indices.btree import BTree, BTreeQuery
from lance_ops.indices.contract import IndexType, LoadedIndex
from lance_ops.store import Store
from lance_ops.table import IndexMetadata

__all__ = ["ALL_INDEX_TYPES", "IndexQuery", "index_type_named", "index_type_of", "load_index"]

IndexQuery: TypeAlias = BTreeQuery
"""The query of any index type in `ALL_INDEX_TYPES`: a union, once there are several."""

ALL_INDEX_TYPES: tuple[IndexType[IndexQuery], ...] = (BTree(),)

_UNSUPPORTED_NAMES = frozenset(
    ["BITMAP", "LABEL_LIST", "INVERTED", "FTS", "NGRAM", "ZONEMAP", "BLOOMFILTER", "RTREE", "MINHASHLSH", "JSON", "FM"]
)


def index_type_named(name: str) -> IndexType[IndexQuery]:
    """Return the index type of a name, in upper or lower case.

    Raises `UnsupportedFeature` for a type of the format that this library does not build, `InvalidInput` for any other
    name.
    """
    wanted = name.upper()
    for index_type in ALL_INDEX_TYPES:
        if index_type.name == wanted:
            return index_type
    if wanted in _UNSUPPORTED_NAMES:
        raise UnsupportedFeature(f"index type {wanted}")
    raise InvalidInput(
        f"index type {name!r} is unknown: use one of {', '.join(known.name for known in ALL_INDEX_TYPES)}"
    )


def index_type_of(metadata: IndexMetadata) -> IndexType[IndexQuery]:
    """Return the type of a table's index; raise `UnsupportedFeature` naming an index of another kind."""
    found = metadata.details.type_name if metadata.details else "unstated type"
    for index_type in ALL_INDEX_TYPES:
        if index_type.details.type_name == found:
            return index_type
    raise UnsupportedFeature(f"an index of {found}", f"index {metadata.name!r}")


def load_index(store: Store, metadata: IndexMetadata) -> LoadedIndex[IndexQuery]:
    """Open an index of the table whose root `store` is; see `IndexType.load` for the errors."""
    return index_type_of(metadata).load(store.child(metadata.directory), metadata)

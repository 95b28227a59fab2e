"""The index types, in one explicit tuple. A new one is a room beside `btree/` and a line in `ALL_INDEX_TYPES`.

Whoever adds it takes its name out of `_UNSUPPORTED_NAMES`. Two more places must know it, and tests compare both with
this tuple: `transactions/manifest_changes/index_coverage.py`, which cannot import this room, states how its entries
name rows; and `IndexSpec` of Dagster's declaration lists its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.indices.btree import BTree
from lance_ops.indices.contract import IndexType, LoadedIndex
from lance_ops.indices.zonemap import ZoneMap
from lance_ops.store import Store
from lance_ops.table import IndexMetadata

__all__ = [
    "ALL_INDEX_TYPES",
    "IndexConfig",
    "IndexQuery",
    "index_type_for",
    "index_type_named",
    "index_type_of",
    "load_index",
]

IndexQuery: TypeAlias = Any
"""The query of any index type in `ALL_INDEX_TYPES`. Only the type that made a query reads it."""

ALL_INDEX_TYPES: tuple[IndexType[IndexQuery], ...] = (BTree(), ZoneMap())

_UNSUPPORTED_NAMES = frozenset(
    ["BITMAP", "LABEL_LIST", "INVERTED", "FTS", "NGRAM", "BLOOMFILTER", "RTREE", "MINHASHLSH", "JSON", "FM"]
)
"""Index types of the format that this library does not build."""


@dataclass(frozen=True)
class IndexConfig:
    """An index type by its name, and its parameters by theirs: `IndexConfig("zonemap", {"rows_per_zone": 4096})`."""

    index_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def index_type_for(wanted: str | IndexConfig) -> IndexType[IndexQuery]:
    """Return the index type of a name or a configuration.

    Raises `InvalidInput` for anything else, and as `index_type_named` and `with_parameters` do.
    """
    config = wanted if isinstance(wanted, IndexConfig) else IndexConfig(wanted)
    if not isinstance(config.index_type, str):
        raise InvalidInput(f"index_type is the name of a type or an IndexConfig, not {config.index_type!r}")
    if not isinstance(config.parameters, Mapping):
        raise InvalidInput(f"the parameters of an index are a mapping by name, not {config.parameters!r}")
    return index_type_named(config.index_type).with_parameters(config.parameters)


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
    """Return the type of a table's index, with its parameters.

    Raises `UnsupportedFeature` naming an index of another kind.
    """
    found = metadata.details.type_name if metadata.details else "unstated type"
    for index_type in ALL_INDEX_TYPES:
        if metadata.details and index_type.details.type_name == found:
            return index_type.with_details(metadata.details, metadata.name)
    raise UnsupportedFeature(f"an index of {found}", f"index {metadata.name!r}")


def load_index(store: Store, metadata: IndexMetadata) -> LoadedIndex[IndexQuery]:
    """Open an index of the table whose root `store` is; see `IndexType.load` for the errors."""
    return index_type_of(metadata).load(store.child(metadata.directory), metadata)

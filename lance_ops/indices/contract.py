"""The contract of every index type: what it can index, how it trains an index, and how it loads and searches one.

An index type is a frozen dataclass whose fields are its parameters; `ALL_INDEX_TYPES` holds one of each with the
defaults. The files of an index are in a directory of their own, which is the root of the store given here. They never
change: remap and merge write a new index into another directory. Writes are not synced: the commit that adds the
index to the manifest syncs its files.

The metadata's fragment bitmap, not the files, says which fragments an index covers. The files may hold rows of other
fragments, for example after the column was rewritten there. A loaded index neither returns nor copies such rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import pyarrow as pa
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.indices.row_address_set import RowAddressSet
from lance_ops.store import Store
from lance_ops.table import IndexDetails, IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap

__all__ = [
    "INDEX_ROW",
    "INDEX_VALUE",
    "IndexType",
    "LoadedIndex",
    "Q",
    "RowKey",
    "TrainingBatches",
    "check_training_batch",
    "claimed_fragments",
]

INDEX_VALUE = "value"
"""The column of training rows that holds the indexed column's values."""

INDEX_ROW = "row"
"""The column of training rows, u64 without nulls, that names the row of each value; see `RowKey`."""

TrainingBatches: TypeAlias = Iterable[pa.RecordBatch]
"""Batches of `INDEX_VALUE` and `INDEX_ROW`: fragments in any order, the rows of one ascending."""

Q = TypeVar("Q")
"""The query that an index type makes of a predicate; only indices of the same type can search for it."""


class RowKey(Enum):
    """How an index names rows."""

    ADDRESS = "row address"
    STABLE_ID = "stable row id"


@dataclass(frozen=True)
class IndexType(ABC, Generic[Q]):
    """A kind of index and its parameters; `Q` is the type of its queries."""

    name: ClassVar[str]
    """The name that `create_scalar_index` takes, in upper case."""

    details_url: ClassVar[str]
    """The type URL of the details message in an index's metadata; it identifies the kind of index."""

    newest_index_version: ClassVar[int]
    """The highest `index_version` that this library reads."""

    names_rows: ClassVar[bool] = True
    """Whether an index knows the value of each row. Otherwise it describes rows together, as zones, and a search mostly
    finds rows that may match."""

    @property
    def details(self) -> IndexDetails:
        """The details that the metadata of an index with these parameters states."""
        return IndexDetails(self.details_url)

    @property
    def parameters(self) -> tuple[tuple[str, Any], ...]:
        """The parameters that an index is built with and keeps, by name."""
        return ()

    def with_parameters(self, parameters: Mapping[str, Any]) -> Self:
        """Return this type with parameters by name; raise `InvalidInput` for one that it does not have."""
        for name in parameters:
            raise InvalidInput(f"a {self.name} index has no parameter {name!r}")
        return self

    def with_details(self, details: IndexDetails, name: str) -> Self:
        """Return this type with the parameters that the metadata of the index `name` states."""
        return self

    @abstractmethod
    def index_version(self, *, stable_row_ids: bool) -> int:
        """Return the `index_version` of a new index, in a table with or without stable row ids."""

    @abstractmethod
    def row_key(self, index_version: int, *, stable_row_ids: bool) -> RowKey:
        """Return how an index of that version names rows; training rows must name them the same way."""

    @abstractmethod
    def check(self, field: Field) -> None:
        """Raise `UnsupportedFeature` naming the column if its type cannot be indexed."""

    @abstractmethod
    def serves(self, conjunct: Predicate) -> Q | None:
        """Return the query that answers a conjunct on the indexed column, None if no query of this kind can."""

    @abstractmethod
    def train(self, rows: TrainingBatches, field: Field, store: Store) -> tuple[IndexFile, ...]:
        """Write an index of these rows; a failure leaves no file behind.

        Raises `SchemaMismatch` for values that are not of the field's type.
        """

    def load(self, store: Store, metadata: IndexMetadata) -> LoadedIndex[Q]:
        """Open an index; `store` is its directory.

        Raises `UnsupportedFeature` for a newer version than this library reads; a reader may then scan instead.
        """
        version = metadata.index_version or 0
        if version > self.newest_index_version:
            raise UnsupportedFeature(f"{self.name} index version {version}", f"index {metadata.name!r}")
        return self._load(store, metadata)

    @abstractmethod
    def _load(self, store: Store, metadata: IndexMetadata) -> LoadedIndex[Q]:
        """Open an index whose version was checked."""


class LoadedIndex(ABC, Generic[Q]):
    """One segment of an index, open for reading; several threads may use it at once."""

    def __init__(self, metadata: IndexMetadata) -> None:
        self.metadata = metadata

    @property
    def fragments(self) -> FrozenBitMap | None:
        """The fragments that the segment covers, None if its writer did not say."""
        return self.metadata.fragment_bitmap

    @property
    @abstractmethod
    def memory_bytes(self) -> int:
        """About how many bytes of memory the open segment takes."""

    @abstractmethod
    def search(self, query: Q) -> RowAddressSet:
        """Return the rows that match, deleted rows included; see `RowAddressSet.exact`."""

    @abstractmethod
    def remap(self, address_map: RowAddressMap, store_out: Store) -> tuple[IndexFile, ...]:
        """Write this index with the new addresses of its rows, without deleted rows."""

    @abstractmethod
    def merge(
        self,
        others: Sequence[LoadedIndex[Q]],
        rows: TrainingBatches,
        store_out: Store,
        *,
        live_fragments: Iterable[int],
    ) -> tuple[IndexFile, ...]:
        """Write one index from this segment, other segments of the same index, and new rows.

        An index of addresses leaves out fragments that are not in `live_fragments`. If two segments cover a fragment,
        its rows come from the first. New rows must belong to fragments that no segment covers.
        """

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Yield every entry, stale ones too, as `INDEX_VALUE` and `INDEX_ROW`, in batches of a bounded size.

        Raises `CorruptFile` where the files contradict each other, and `UnsupportedFeature` for a type of index that
        does not hold the values of single rows.
        """
        raise UnsupportedFeature("listing the entries of such an index", f"index {self.metadata.name!r}")

    def stored_values(self) -> Iterator[pa.Array]:
        """Yield the values that the files hold, also of rows that are gone, in any order and with repetitions.

        Raises as `entries` does.
        """
        for batch in self.entries():
            yield batch.column(INDEX_VALUE)

    def contradicted(self, rows: pa.RecordBatch) -> Uint64Array:
        """Return the live rows whose value the index rules out: its searches would lose them.

        `rows` has `INDEX_VALUE` and `INDEX_ROW`, of fragments that the segment covers. Raises `UnsupportedFeature` for
        a type of index that has `entries` instead.
        """
        raise UnsupportedFeature("comparing rows with such an index", f"index {self.metadata.name!r}")

    @abstractmethod
    def statistics(self) -> dict[str, object]:
        """Return the statistics that the reference reports for such a segment, as values for JSON."""


def claimed_fragments(segments: Sequence[LoadedIndex[Q]], live_fragments: Iterable[int]) -> list[BitMap]:
    """Return the fragments whose rows a merge takes from each segment: live ones that no earlier segment covers."""
    claims, unclaimed = [], BitMap(live_fragments)
    for segment in segments:
        claimed = unclaimed if segment.fragments is None else unclaimed & segment.fragments
        unclaimed = unclaimed - claimed
        claims.append(claimed)
    return claims


def check_training_batch(batch: pa.RecordBatch, value_type: pa.DataType, column: str) -> tuple[pa.Array, pa.Array]:
    """Return a training batch's values and rows; raise `SchemaMismatch` for missing columns or other types."""
    expected = {INDEX_VALUE: value_type, INDEX_ROW: pa.uint64()}
    for name, wanted in expected.items():
        found = batch.schema.field(name).type if name in batch.schema.names else None
        if found != wanted:
            raise SchemaMismatch(f"column {column!r}: an index is trained on {name}: {wanted}, not {found}")
    return batch.column(INDEX_VALUE), batch.column(INDEX_ROW)

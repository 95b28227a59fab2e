"""What every index type fulfils.

An index type is a frozen dataclass whose fields are its parameters; `ALL_INDEX_TYPES` holds one of each with the
defaults. It says which columns and which conjuncts of a predicate it serves, trains an index from a column's values,
and loads one again. The files of an index are in a directory of their own, here the root of a store; they never
change: whatever alters an index writes another one elsewhere.

Which fragments an index answers for is not in its files but in the metadata's fragment bitmap. Rows of other
fragments may linger in the files (their column was rewritten, say); a loaded index neither returns nor carries them
on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Generic, TypeAlias, TypeVar

import pyarrow as pa
from pyroaring import FrozenBitMap

from lance_ops.core.errors import SchemaMismatch, UnsupportedFeature
from lance_ops.core.predicate import Predicate
from lance_ops.core.schema import Field
from lance_ops.indices.row_address_set import RowAddressSet
from lance_ops.store import Store
from lance_ops.table import IndexDetails, IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap

__all__ = ["INDEX_ROW", "INDEX_VALUE", "IndexType", "LoadedIndex", "RowKey", "TrainingBatches", "check_training_batch"]

INDEX_VALUE = "value"
"""The column of training rows that holds the indexed column's values."""

INDEX_ROW = "row"
"""The column of training rows, u64 without nulls, that names the row a value is of; see `RowKey`."""

TrainingBatches: TypeAlias = Iterable[pa.RecordBatch]
"""Batches of `INDEX_VALUE` and `INDEX_ROW`: fragments in any order, the rows of one ascending."""

Q = TypeVar("Q")
"""The query that an index type makes of a predicate; only indices of the same type can search for it."""


class RowKey(Enum):
    """What an index stores to name a row."""

    ADDRESS = "row address"
    STABLE_ID = "stable row id"


@dataclass(frozen=True)
class IndexType(ABC, Generic[Q]):
    """A kind of index and its parameters."""

    name: ClassVar[str]
    """As `create_scalar_index` takes it, in upper case."""

    details_url: ClassVar[str]
    """Type of the message in the metadata that says which kind an index is."""

    newest_index_version: ClassVar[int]
    """The highest `index_version` read here."""

    @property
    def details(self) -> IndexDetails:
        """What the metadata says of an index trained with these parameters."""
        return IndexDetails(self.details_url)

    @abstractmethod
    def index_version(self, *, stable_row_ids: bool) -> int:
        """Return the version that the metadata of a new index states, in a table with or without stable row ids."""

    @abstractmethod
    def row_key(self, index_version: int, *, stable_row_ids: bool) -> RowKey:
        """Return what an index of that version stores; training rows must name rows the same way."""

    @abstractmethod
    def check(self, field: Field) -> None:
        """Raise `UnsupportedFeature` naming the column if its type cannot be indexed."""

    @abstractmethod
    def serves(self, conjunct: Predicate) -> Q | None:
        """Return the search that answers a conjunct on the indexed column, None if this kind of index has none."""

    @abstractmethod
    def train(self, rows: TrainingBatches, field: Field, store: Store) -> tuple[IndexFile, ...]:
        """Write an index of these rows; a failure leaves no file behind.

        Raises `SchemaMismatch` for values that are not of the field's type.
        """

    def load(self, store: Store, metadata: IndexMetadata) -> LoadedIndex[Q]:
        """Open an index; `store` is its directory.

        Raises `UnsupportedFeature` for a version newer than is known here, which a reader may take as: no index.
        """
        version = metadata.index_version or 0
        if version > self.newest_index_version:
            raise UnsupportedFeature(f"{self.name} index version {version}", f"index {metadata.name!r}")
        return self._load(store, metadata)

    @abstractmethod
    def _load(self, store: Store, metadata: IndexMetadata) -> LoadedIndex[Q]:
        """Open an index whose version is known."""


class LoadedIndex(ABC, Generic[Q]):
    """One segment of an index, open for reading; safe to use from several threads."""

    def __init__(self, metadata: IndexMetadata) -> None:
        self.metadata = metadata

    @property
    def fragments(self) -> FrozenBitMap | None:
        """The fragments it answers for, None where its writer did not say."""
        return self.metadata.fragment_bitmap

    @abstractmethod
    def search(self, query: Q) -> RowAddressSet:
        """Return the rows that match, deleted ones included; see `RowAddressSet.exact`."""

    @abstractmethod
    def remap(self, moved: RowAddressMap, store_out: Store) -> tuple[IndexFile, ...]:
        """Write this index with its rows at their new addresses, without those that are gone.

        The files may not be durable before they are committed.
        """

    @abstractmethod
    def merge(
        self,
        others: Sequence[LoadedIndex[Q]],
        rows: TrainingBatches,
        store_out: Store,
        *,
        live_fragments: Iterable[int],
    ) -> tuple[IndexFile, ...]:
        """Write one index of this one, of other segments of the same index, and of new rows.

        An index of addresses leaves out rows of fragments that are not in `live_fragments`, and takes a fragment that
        two segments cover from the first. New rows must be of fragments that no segment covers.
        """

    @abstractmethod
    def statistics(self) -> dict[str, object]:
        """Return what the reference reports of a segment of this kind, as plain values for JSON."""


def check_training_batch(batch: pa.RecordBatch, value_type: pa.DataType, column: str) -> tuple[pa.Array, pa.Array]:
    """Return the values and the rows of a training batch; raise `SchemaMismatch` for other columns or types."""
    expected = {INDEX_VALUE: value_type, INDEX_ROW: pa.uint64()}
    for name, wanted in expected.items():
        found = batch.schema.field(name).type if name in batch.schema.names else None
        if found != wanted:
            raise SchemaMismatch(f"column {column!r}: an index is trained on {name}: {wanted}, not {found}")
    return batch.column(INDEX_VALUE), batch.column(INDEX_ROW)

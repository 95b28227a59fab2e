"""The part of `LanceDataset` that builds and describes indices, and follows rows that moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_ops.api.scanning import refuse
from lance_ops.api.stats import LanceStats, describe_indices, list_indices
from lance_ops.api.version_handle import Handle
from lance_ops.core.addresses import TOMBSTONE_ROW
from lance_ops.core.errors import InvalidInput
from lance_ops.maintenance.indexing import reindex
from lance_ops.reading import remap_addresses

__all__ = ["Indexing"]


class Indexing(Handle):
    """Indices; the verbs that make or drop one move the handle to the version they made."""

    @property
    def stats(self) -> LanceStats:
        """Numbers about fragments and indices."""
        return LanceStats(self._snapshot)

    def create_scalar_index(
        self, column: str, index_type: str, name: str | None = None, *, replace: bool = True, train: bool = True
    ) -> None:
        """Build an index on a column; see `lance_ops.maintenance.indexing.reindex`."""
        refuse(self.uri, train=None if train else "False")
        self._committed(reindex.create_scalar_index(self._snapshot, column, index_type, name, replace=replace))

    def drop_index(self, name: str) -> None:
        """Remove an index; raise `IndexNotFound` naming those there are."""
        self._committed(reindex.drop_index(self._snapshot, name))

    @property
    def has_index(self) -> bool:
        """Whether there is any index."""
        return bool(self._snapshot.manifest.indices)

    def list_indices(self) -> list[dict[str, Any]]:
        """Return one dictionary for each segment of each index."""
        return list_indices(self._snapshot)

    def describe_indices(self) -> list[Any]:
        """Return the name, columns and coverage of each index."""
        return list(describe_indices(self._snapshot))

    def remap_row_addrs(self, addrs: pa.Array) -> pa.Array | None:
        """Return where rows are by where they were, over compactions that left the indices to be remapped later.

        Null for a row that one of them dropped; an address that none knows stays as it is. None if there was none.
        Raises `InvalidInput` for what is no array of uint64.
        """
        if not (isinstance(addrs, pa.Array) and pa.types.is_uint64(addrs.type)):
            raise InvalidInput("row addresses are an array of uint64")
        found = remap_addresses(self._snapshot, addrs.fill_null(TOMBSTONE_ROW).to_numpy())
        return None if found is None else pa.array(found, mask=found == np.uint64(TOMBSTONE_ROW))

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return numbers about an index; raise `IndexNotFound` naming those there are."""
        return self.stats.index_stats(index_name)

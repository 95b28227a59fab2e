"""The methods of `LanceDataset` that build, drop and describe indices, and remap row addresses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from lance_ops import reading
from lance_ops.api.scanning import refuse
from lance_ops.api.stats import LanceStats, describe_indices, list_indices
from lance_ops.api.stats import index_segments as segments_of
from lance_ops.api.version_handle import Handle
from lance_ops.core.addresses import TOMBSTONE_ROW
from lance_ops.core.errors import InvalidInput
from lance_ops.maintenance import indexing
from lance_ops.runners import Runner

if TYPE_CHECKING:
    from lance_ops.indices import IndexConfig

__all__ = ["Indexing"]


class Indexing(Handle):
    """Index methods. Those that build or drop an index move the handle to the version they made."""

    @property
    def stats(self) -> LanceStats:
        """Numbers about fragments and indices."""
        return LanceStats(self._snapshot)

    def create_scalar_index(
        self,
        column: str,
        index_type: str | IndexConfig,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        runner: Runner | None = None,
    ) -> None:
        """Build an index on a column; see `lance_ops.maintenance.indexing.reindex`.

        `index_type` is `"BTREE"`, `"ZONEMAP"`, or an `IndexConfig` with parameters. Tasks of `runner` do the work if it
        is large; without a runner, this process does it.
        """
        refuse(self.uri, train=None if train else "False")
        self._committed(
            indexing.create_scalar_index(self._snapshot, column, index_type, name, replace=replace, runner=runner)
        )

    def drop_index(self, name: str) -> None:
        """Remove an index; raise `IndexNotFound` listing the existing ones."""
        self._committed(indexing.drop_index(self._snapshot, name))

    def prewarm_index(
        self, name: str, *, with_position: bool = False, index_segments: Iterable[str | UUID] | None = None
    ) -> None:
        """Open an index into the cache of this handle's session, so that the first query does not wait for it.

        `index_segments` names the segments to open, all by default. The lookup table of a segment is read, its pages
        are not. Raises `IndexNotFound` listing the existing indices, and `InvalidInput` for a segment of another index.
        """
        refuse(self.uri, with_position="True" if with_position else None)
        segments = {segment.uuid: segment for segment in segments_of(self._snapshot, name)}
        wanted = list(segments) if index_segments is None else [_uuid(each) for each in index_segments]
        unknown = next((uuid for uuid in wanted if uuid not in segments), None)
        if unknown is not None:
            raise InvalidInput(f"index {name!r} has no segment {unknown}: it has {', '.join(map(str, segments))}")
        for uuid in wanted:
            reading.open_index(self._snapshot, segments[uuid])

    @property
    def has_index(self) -> bool:
        """Whether the version has an index."""
        return bool(self._snapshot.manifest.indices)

    def list_indices(self) -> list[dict[str, Any]]:
        """Return one dictionary for each segment of each index."""
        return list_indices(self._snapshot)

    def describe_indices(self) -> list[Any]:
        """Return the name, columns and coverage of each index."""
        return list(describe_indices(self._snapshot))

    def remap_row_addrs(self, addrs: pa.Array) -> pa.Array | None:
        """Return the present addresses of rows after compactions that deferred the remapping of indices.

        The result is null for a row that a compaction dropped. An address that no compaction touched stays the same.
        Returns None if no compaction deferred its remapping. Raises `InvalidInput` unless given an array of uint64.
        """
        if not (isinstance(addrs, pa.Array) and pa.types.is_uint64(addrs.type)):
            raise InvalidInput("row addresses are an array of uint64")
        found = reading.remap_addresses(self._snapshot, addrs.fill_null(TOMBSTONE_ROW).to_numpy())
        return None if found is None else pa.array(found, mask=found == np.uint64(TOMBSTONE_ROW))

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return statistics of an index; raise `IndexNotFound` listing the existing ones."""
        return self.stats.index_stats(index_name)


def _uuid(text: str | UUID) -> UUID:
    try:
        return text if isinstance(text, UUID) else UUID(text)
    except ValueError as error:
        raise InvalidInput(f"the name of an index segment is a UUID, not {text!r}") from error

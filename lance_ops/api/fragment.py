"""`LanceFragment`: one fragment under the reference's names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.api.fragment_changes import FragmentChanges
from lance_ops.api.projection import Columns, project
from lance_ops.api.requests import Filter, scan_request
from lance_ops.api.scanner import LanceScanner
from lance_ops.core.addresses import row_addrs
from lance_ops.core.errors import InvalidInput
from lance_ops.snapshot.take import take_addresses
from lance_ops.table import DataFile, Fragment

__all__ = ["LanceFragment"]


class LanceFragment(FragmentChanges):
    """Rows stored together in one version of a dataset."""

    @property
    def fragment_id(self) -> int:
        """The fragment's id."""
        return self._fragment.id

    @property
    def metadata(self) -> Fragment:
        """What the manifest says of it."""
        return self._fragment

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return self._snapshot.schema.to_arrow()

    @property
    def physical_rows(self) -> int:
        """Rows stored, deleted ones too."""
        return self._fragment.physical_rows

    @property
    def num_deletions(self) -> int:
        """Rows deleted."""
        return self.physical_rows - self._snapshot.num_live_rows(self._fragment)

    def data_files(self) -> list[DataFile]:
        """Return its data files."""
        return list(self._fragment.files)

    def deletion_file(self) -> str | None:
        """Return the path of its deletion file, relative to the dataset."""
        return self._fragment.deletion_path

    def count_rows(self, filter: Filter = None) -> int:
        """Return the live rows for which the filter is true."""
        return self.scanner(filter=filter).count_rows()

    def scanner(
        self,
        columns: Columns = None,
        batch_size: int | None = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
    ) -> LanceScanner:
        """Return a scan of this fragment."""
        projection = project(self._snapshot, columns, with_row_id=with_row_id, with_row_address=with_row_address)
        request = scan_request(
            self._snapshot,
            projection,
            filter=filter,
            limit=limit,
            offset=offset,
            fragment_ids=(self.fragment_id,),
        )
        return LanceScanner(self._snapshot, request, projection, batch_size)

    def to_table(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
    ) -> pa.Table:
        """Return its live rows."""
        return self.scanner(columns, None, filter, limit, offset, with_row_id, with_row_address).to_table()

    def to_batches(
        self, columns: Columns = None, batch_size: int | None = None, filter: Filter = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield its live rows."""
        return self.scanner(columns, batch_size, filter).to_batches()

    def take(self, indices: Sequence[int], columns: Columns = None) -> pa.Table:
        """Return live rows by their position among the fragment's live rows, in the order asked for."""
        live = self._snapshot.live_offsets(self._fragment)
        positions = np.asarray(indices, dtype=np.int64)
        if len(positions) and not 0 <= positions.min() <= positions.max() < len(live):
            raise InvalidInput(
                f"fragment {self.fragment_id} has {len(live)} rows: indices must be 0 to {len(live) - 1}"
            )
        projection = project(self._snapshot, columns, with_row_id=False, with_row_address=False, flatten=False)
        request = scan_request(self._snapshot, projection)
        return projection.apply(take_addresses(self._snapshot, row_addrs(self.fragment_id, live[positions]), request))

    def __repr__(self) -> str:
        return f"LanceFragment(id={self.fragment_id}, rows={self._snapshot.num_live_rows(self._fragment)})"

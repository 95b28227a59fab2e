"""`LanceFragment`: one fragment under the reference's names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, Self

import numpy as np
import pyarrow as pa

from lance_ops import reading
from lance_ops import snapshot as snapshots
from lance_ops.api.argument_checks import check_public_methods, row_numbers
from lance_ops.api.fragments.fragment_changes import FragmentChanges
from lance_ops.api.scanning import (
    LAZY,
    Columns,
    Filter,
    LanceScanner,
    OrderBy,
    ScanOptions,
    arguments_of,
    make_scanner,
    project,
    scan_request,
)
from lance_ops.api.schemas import shown_schema
from lance_ops.api.version_handle import Handle
from lance_ops.core.addresses import row_addrs
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.snapshot import Snapshot
from lance_ops.table import DataFile, Fragment

__all__ = ["FragmentSession", "LanceFragment"]


@check_public_methods
class LanceFragment(FragmentChanges):
    """A fragment of one version of a dataset. Raises `InvalidInput` if the version has no fragment of that id."""

    def __init__(self, dataset: Handle, fragment_id: int | None, *, fragment: Fragment | None = None) -> None:
        if fragment is None:
            known = dataset.snapshot.fragments_by_id
            if fragment_id is None or fragment_id not in known:
                raise InvalidInput(f"{dataset.uri} has no fragment {fragment_id}: it has {sorted(known)[:10]}")
            fragment = known[fragment_id]
        super().__init__(dataset.snapshot, fragment)

    @classmethod
    def of(cls, snapshot: Snapshot, fragment: Fragment) -> Self:
        """Return a fragment of an opened version."""
        found = cls.__new__(cls)
        FragmentChanges.__init__(found, snapshot, fragment)
        return found

    @property
    def fragment_id(self) -> int:
        """The fragment's id."""
        return self._fragment.id

    @property
    def metadata(self) -> Fragment:
        """The fragment's description in the manifest."""
        return self._fragment

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return shown_schema(self._snapshot.schema)

    @property
    def physical_schema(self) -> NoReturn:
        """Raise `UnsupportedFeature`, as the reference does; `metadata` says which columns the files hold."""
        raise UnsupportedFeature("physical_schema of a Lance fragment (see metadata)")

    @property
    def partition_expression(self) -> NoReturn:
        """Raise `UnsupportedFeature`: Lance fragments have no partitions."""
        raise UnsupportedFeature("partition_expression of a Lance fragment")

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

    def head(self, num_rows: int) -> pa.Table:
        """Return the first live rows."""
        return self.scanner(limit=num_rows).to_table()

    def scanner(
        self,
        schema: pa.Schema | None = None,
        *,
        columns: Columns = None,
        batch_size: int | None = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: str | None = None,
        order_by: OrderBy = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | Sequence[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
    ) -> LanceScanner:
        """Return a scan of this fragment; see `LanceDataset.scanner`.

        pyarrow's fragments take `schema` as the first argument; it must be the table's schema.
        """
        if schema is not None and not schema.equals(self.schema):
            raise UnsupportedFeature("a fragment's scanner with another schema than the table's", self._snapshot.uri)
        arguments = arguments_of(locals(), apart_from=("schema",))
        options = ScanOptions(**arguments, fragment_ids=(self.fragment_id,))
        return make_scanner(self._snapshot, options)

    def to_table(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_handling: str | None = None,
        order_by: OrderBy = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | Sequence[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
    ) -> pa.Table:
        """Return its live rows; see `scanner`."""
        return self.scanner(**arguments_of(locals())).to_table()

    def to_batches(
        self,
        *,
        columns: Columns = None,
        batch_size: int | None = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        batch_readahead: int = 16,
        blob_handling: str | None = None,
        order_by: OrderBy = None,
        use_scalar_index: bool | None = None,
        io_buffer_size: int | None = None,
        late_materialization: bool | Sequence[str] | None = None,
        include_deleted_rows: bool | None = None,
        batch_size_bytes: int | None = None,
        strict_batch_size: bool | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield its live rows; see `scanner`."""
        return self.scanner(**arguments_of(locals())).to_batches()

    def to_pandas(
        self,
        columns: Columns = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        with_row_id: bool = False,
        with_row_address: bool = False,
        blob_mode: str = LAZY,
        order_by: OrderBy = None,
        **kwargs: Any,
    ) -> Any:
        """Return its live rows as a data frame; see `LanceScanner.to_pandas`."""
        arguments = arguments_of(locals(), apart_from=("blob_mode", "kwargs"))
        return self.scanner(**arguments).to_pandas(blob_mode=blob_mode, **kwargs)

    def take(self, indices: Sequence[int], columns: Columns = None) -> pa.Table:
        """Return live rows by their position among the fragment's live rows, in the order asked for."""
        return self._take(indices, columns)

    def _take(self, indices: Sequence[int], columns: Columns, *, with_row_address: bool = False) -> pa.Table:
        num_rows = self._snapshot.num_live_rows(self._fragment)
        positions = row_numbers(indices, "indices", np.int64)
        if len(positions) and not 0 <= positions.min() <= positions.max() < num_rows:
            raise InvalidInput(f"fragment {self.fragment_id} has {num_rows} rows: indices must be 0 to {num_rows - 1}")
        projection = project(
            self._snapshot, columns, with_row_id=False, with_row_address=with_row_address, flatten=False
        )
        request = scan_request(self._snapshot, projection)
        offsets = self._snapshot.live_offsets_at(self._fragment, positions)
        return projection.apply(reading.take_addresses(self._snapshot, row_addrs(self.fragment_id, offsets), request))

    def open_session(self, columns: Columns = None, with_row_address: bool | None = None) -> FragmentSession:
        """Return a session that takes rows of this fragment repeatedly."""
        return FragmentSession(self, columns, bool(with_row_address))

    def validate(self) -> None:
        """Check that the files exist with the stated size and rows; see `LanceDataset.validate`.

        Raises `CorruptFile` naming the first thing that is wrong.
        """
        snapshots.validate_fragment(self._snapshot, self._fragment)

    def __repr__(self) -> str:
        return f"LanceFragment(id={self.fragment_id}, rows={self._snapshot.num_live_rows(self._fragment)})"


@check_public_methods
class FragmentSession:
    """Takes rows of one fragment and keeps its files open; `LanceFragment.open_session` makes one."""

    def __init__(self, fragment: LanceFragment, columns: Columns, with_row_address: bool) -> None:
        self._fragment = fragment
        self._columns = columns
        self._with_row_address = with_row_address

    def take(self, indices: Sequence[int]) -> pa.Table:
        """Return live rows as `LanceFragment.take` does."""
        return self._fragment._take(indices, self._columns, with_row_address=self._with_row_address)

"""`ScannerBuilder`: build a scan option by option, under the reference's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from lance_ops.api.argument_checks import check_public_methods
from lance_ops.api.fragments import LanceFragment
from lance_ops.api.scanning import Columns, Filter, LanceScanner, ScanOptions, ScanStatistics, make_scanner
from lance_ops.api.version_handle import Handle
from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import ColumnOrdering

__all__ = ["ScannerBuilder"]


@check_public_methods
class ScannerBuilder:
    """Collects the options of a scan. `LanceDataset.scanner` describes them."""

    def __init__(self, ds: Handle) -> None:
        self.ds = ds
        self._options = ScanOptions()

    def apply_defaults(self, default_opts: Mapping[str, Any]) -> Self:
        """Set options by name; raise `InvalidInput` for an unknown name."""
        for name, value in default_opts.items():
            setter = None if name.startswith("_") else getattr(self, name, None)
            if setter is None:
                raise InvalidInput(f"unknown option {name!r} of a scan")
            setter(**value) if isinstance(value, Mapping) else setter(value)
        return self

    def batch_size(self, batch_size: int) -> Self:
        """Set the maximum number of rows in a batch."""
        return self._with(batch_size=batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> Self:
        """Set the approximate maximum of bytes in a batch."""
        return self._with(batch_size_bytes=batch_size_bytes)

    def io_buffer_size(self, io_buffer_size: int) -> Self:
        """Set how many bytes are read ahead."""
        return self._with(io_buffer_size=io_buffer_size)

    def batch_readahead(self, nbatches: int | None = None) -> Self:
        """Set how many blocks of rows are read ahead."""
        return self._with(batch_readahead=nbatches)

    def fragment_readahead(self, nfragments: int | None = None) -> Self:
        """Set how many blocks are read ahead; each block lies in one fragment."""
        return self._with(fragment_readahead=nfragments)

    def scan_in_order(self, scan_in_order: bool = True) -> Self:
        """Accept the reference's option; rows always come in the order of the fragments."""
        return self._with(scan_in_order=scan_in_order)

    def scan_stats_callback(self, callback: Callable[[ScanStatistics], None]) -> Self:
        """Set a function that is called with the statistics of each scan when it has ended."""
        return self._with(scan_stats_callback=callback)

    def limit(self, n: int | None = None) -> Self:
        """Set the maximum number of rows in the result."""
        return self._with(limit=n)

    def offset(self, n: int | None = None) -> Self:
        """Set how many rows to skip."""
        return self._with(offset=n)

    def columns(self, cols: Columns = None) -> Self:
        """Choose columns by name, or compute them from a mapping of names to SQL expressions."""
        return self._with(columns=cols)

    def filter(self, filter: Filter) -> Self:
        """Choose rows."""
        return self._with(filter=filter)

    def row_addr_prefilter(self, allowlist: bytes | None = None, blocklist: bytes | None = None) -> Self:
        """Scan only the rows in the allow list and not in the block list; both are serialized sets of row ids."""
        return self._with(row_addr_allowlist=allowlist, row_addr_blocklist=blocklist)

    def prefilter(self, prefilter: bool) -> Self:
        """Accept the reference's option for searches, which this library does not have."""
        return self._with(prefilter=prefilter)

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Add the rows' ids."""
        return self._with(with_row_id=with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> Self:
        """Add the rows' addresses."""
        return self._with(with_row_address=with_row_address)

    def late_materialization(self, late_materialization: bool | Sequence[str]) -> Self:
        """Set which columns are read only after the filter has been tested: all, none, or the named ones."""
        return self._with(late_materialization=late_materialization)

    def blob_handling(self, blob_handling: str | None) -> Self:
        """Choose how blobs are returned: as bytes, or as descriptions of their location."""
        return self._with(blob_handling=blob_handling)

    def use_stats(self, use_stats: bool = True) -> Self:
        """Set whether statistics in data files are used."""
        return self._with(use_stats=use_stats)

    def use_scalar_index(self, use_scalar_index: bool = True) -> Self:
        """Set whether indices are used."""
        return self._with(use_scalar_index=use_scalar_index)

    def with_fragments(self, fragments: Iterable[LanceFragment] | None) -> Self:
        """Scan these fragments only, in this order."""
        return self._with(fragment_ids=None if fragments is None else tuple(each.fragment_id for each in fragments))

    def fast_search(self, flag: bool) -> Self:
        """Leave out fragments that the index in use does not cover."""
        return self._with(fast_search=flag)

    def include_deleted_rows(self, flag: bool) -> Self:
        """Return deleted rows too, if they are still stored; their row id is null."""
        return self._with(include_deleted_rows=flag)

    def strict_batch_size(self, strict_batch_size: bool = False) -> Self:
        """Make every batch except the last exactly `batch_size` rows long."""
        return self._with(strict_batch_size=strict_batch_size)

    def order_by(self, orderings: Sequence[ColumnOrdering] | None) -> Self:
        """Sort the result."""
        return self._with(order_by=orderings)

    def disable_scoring_autoprojection(self, disable: bool = True) -> Self:
        """Accept the reference's option for searches, which this library does not have."""
        return self._with(disable_scoring_autoprojection=disable)

    @property
    def options(self) -> ScanOptions:
        """The options set so far."""
        return self._options

    def to_scanner(self) -> LanceScanner:
        """Return the scan; raises what `LanceDataset.scanner` raises."""
        return make_scanner(self.ds.snapshot, self._options)

    def _with(self, **changes: Any) -> Self:
        self._options = replace(self._options, **changes)
        return self

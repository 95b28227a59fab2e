"""`ScannerBuilder`: a scan put together option by option, under the reference's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from lance_ops.api.fragments import LanceFragment
from lance_ops.api.scanning import Columns, Filter, LanceScanner, ScanOptions, make_scanner
from lance_ops.api.version_handle import Handle
from lance_ops.core.errors import InvalidInput
from lance_ops.reading import ColumnOrdering

__all__ = ["ScannerBuilder"]


class ScannerBuilder:
    """Collects the options of a scan; what they mean, `LanceDataset.scanner` says."""

    def __init__(self, ds: Handle) -> None:
        self.ds = ds
        self._options = ScanOptions()

    def apply_defaults(self, default_opts: Mapping[str, Any]) -> Self:
        """Set options by name; raise `InvalidInput` for one that is unknown."""
        for name, value in default_opts.items():
            setter = None if name.startswith("_") else getattr(self, name, None)
            if setter is None:
                raise InvalidInput(f"unknown option {name!r} of a scan")
            setter(**value) if isinstance(value, Mapping) else setter(value)
        return self

    def batch_size(self, batch_size: int) -> Self:
        """Set the most rows of a batch."""
        return self._with(batch_size=batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> Self:
        """Set about how many bytes a batch has at most."""
        return self._with(batch_size_bytes=batch_size_bytes)

    def io_buffer_size(self, io_buffer_size: int) -> Self:
        """Set how many bytes are read before they are asked for."""
        return self._with(io_buffer_size=io_buffer_size)

    def batch_readahead(self, nbatches: int | None = None) -> Self:
        """Set how many blocks are read before they are asked for."""
        return self._with(batch_readahead=nbatches)

    def fragment_readahead(self, nfragments: int | None = None) -> Self:
        """Set how many blocks, each of one fragment, are read before they are asked for."""
        return self._with(fragment_readahead=nfragments)

    def scan_in_order(self, scan_in_order: bool = True) -> Self:
        """Ask for the order of the fragments, or for none."""
        return self._with(scan_in_order=scan_in_order)

    def limit(self, n: int | None = None) -> Self:
        """Set the most rows of the answer."""
        return self._with(limit=n)

    def offset(self, n: int | None = None) -> Self:
        """Set how many rows to skip."""
        return self._with(offset=n)

    def columns(self, cols: Columns = None) -> Self:
        """Choose columns by name, or compute them: names to SQL expressions."""
        return self._with(columns=cols)

    def filter(self, filter: Filter) -> Self:
        """Choose rows."""
        return self._with(filter=filter)

    def row_addr_prefilter(self, allowlist: bytes | None = None, blocklist: bytes | None = None) -> Self:
        """Look only at rows of these ids, and not at those: serialized sets, see `row_masks`."""
        return self._with(row_addr_allowlist=allowlist, row_addr_blocklist=blocklist)

    def prefilter(self, prefilter: bool) -> Self:
        """Ask for the filter before a search."""
        return self._with(prefilter=prefilter)

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Add the rows' ids."""
        return self._with(with_row_id=with_row_id)

    def with_row_address(self, with_row_address: bool = True) -> Self:
        """Add the rows' addresses."""
        return self._with(with_row_address=with_row_address)

    def late_materialization(self, late_materialization: bool | Sequence[str]) -> Self:
        """Say which columns are read only after the filter was tested: all, none, or those named."""
        return self._with(late_materialization=late_materialization)

    def blob_handling(self, blob_handling: str | None) -> Self:
        """Choose what stands for a blob: its bytes, or where they are."""
        return self._with(blob_handling=blob_handling)

    def use_stats(self, use_stats: bool = True) -> Self:
        """Use the statistics in data files, or do not."""
        return self._with(use_stats=use_stats)

    def use_scalar_index(self, use_scalar_index: bool = True) -> Self:
        """Use indices, or do not."""
        return self._with(use_scalar_index=use_scalar_index)

    def with_fragments(self, fragments: Iterable[LanceFragment] | None) -> Self:
        """Scan these fragments only, in this order."""
        return self._with(fragment_ids=None if fragments is None else tuple(each.fragment_id for each in fragments))

    def fast_search(self, flag: bool) -> Self:
        """Leave out fragments that an index in use does not cover."""
        return self._with(fast_search=flag)

    def include_deleted_rows(self, flag: bool) -> Self:
        """Answer with deleted rows too, as far as they are still stored; they have no row id."""
        return self._with(include_deleted_rows=flag)

    def strict_batch_size(self, strict_batch_size: bool = False) -> Self:
        """Give all batches but the last exactly as many rows as a batch may have."""
        return self._with(strict_batch_size=strict_batch_size)

    def order_by(self, orderings: Sequence[ColumnOrdering] | None) -> Self:
        """Sort the answer."""
        return self._with(order_by=orderings)

    def disable_scoring_autoprojection(self, disable: bool = True) -> Self:
        """Leave a search's score out of the answer."""
        return self._with(disable_scoring_autoprojection=disable)

    @property
    def options(self) -> ScanOptions:
        """What was set so far."""
        return self._options

    def to_scanner(self) -> LanceScanner:
        """Return the scan; raises what `LanceDataset.scanner` raises."""
        return make_scanner(self.ds.snapshot, self._options)

    def _with(self, **changes: Any) -> Self:
        self._options = replace(self._options, **changes)
        return self

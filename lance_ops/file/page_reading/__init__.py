"""Read pages of any file version: select rows, fetch the bytes they need, and limit the memory they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.file.page_reading.budget import READ_BYTES, Budget, SharedBytes, row_bytes
    from lance_ops.file.page_reading.decoding_errors import naming_place
    from lance_ops.file.page_reading.decoding_steps import Steps, combine_steps, run_all, run_steps, shift_steps
    from lance_ops.file.page_reading.flat_values import read_flat_values
    from lance_ops.file.page_reading.page_rows import PageRows, cut_rows, shared_boundaries, split_rows
    from lance_ops.file.page_reading.rows import RowSelection, RowSet, RowSlice, rows_of_runs
    from lance_ops.file.page_reading.source import Extent, FileSource, Ranges, SourceBytes, merge_ranges

__all__ = [
    "READ_BYTES",
    "Budget",
    "Extent",
    "FileSource",
    "PageRows",
    "Ranges",
    "RowSelection",
    "RowSet",
    "RowSlice",
    "SharedBytes",
    "SourceBytes",
    "Steps",
    "combine_steps",
    "cut_rows",
    "merge_ranges",
    "naming_place",
    "read_flat_values",
    "row_bytes",
    "rows_of_runs",
    "run_all",
    "run_steps",
    "shared_boundaries",
    "shift_steps",
    "split_rows",
]

_MODULES = {
    "READ_BYTES": "budget",
    "Budget": "budget",
    "Extent": "source",
    "FileSource": "source",
    "PageRows": "page_rows",
    "Ranges": "source",
    "RowSelection": "rows",
    "RowSet": "rows",
    "RowSlice": "rows",
    "SharedBytes": "budget",
    "SourceBytes": "source",
    "Steps": "decoding_steps",
    "combine_steps": "decoding_steps",
    "cut_rows": "page_rows",
    "merge_ranges": "source",
    "naming_place": "decoding_errors",
    "read_flat_values": "flat_values",
    "row_bytes": "budget",
    "rows_of_runs": "rows",
    "run_all": "decoding_steps",
    "run_steps": "decoding_steps",
    "shared_boundaries": "page_rows",
    "shift_steps": "decoding_steps",
    "split_rows": "page_rows",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

"""Metadata of files that is read or written for many columns, or read for many files, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.kernels.metadata.columns import read_columns, write_columns
    from lance_ops.kernels.metadata.small_files import FILE_FACTS, PAGE_FACTS, read_file_ends, read_single_pages

__all__ = ["FILE_FACTS", "PAGE_FACTS", "read_columns", "read_file_ends", "read_single_pages", "write_columns"]

_MODULES = {
    "FILE_FACTS": "small_files",
    "PAGE_FACTS": "small_files",
    "read_columns": "columns",
    "read_file_ends": "small_files",
    "read_single_pages": "small_files",
    "write_columns": "columns",
}

__getattr__ = import_on_first_use(__name__, _MODULES)

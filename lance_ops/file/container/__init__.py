"""The container of 2.x files: footer, offset tables and column metadata, and how a column's pages are collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.file.container.column_metadata import (
        MAX_ROWS,
        PLAIN_COLUMN,
        Column,
        Page,
        decode_any,
        decode_column,
        decode_encoding,
    )
    from lance_ops.file.container.column_writer import ColumnWriter, FieldWriter, HeldBatch, WriteBytes
    from lance_ops.file.container.encoded_page import EncodedPage
    from lance_ops.file.container.footer import (
        ALIGNMENT,
        PADDING,
        Footer,
        check_no_overlap,
        decode_extents,
        encode_extents,
    )
    from lance_ops.file.container.plain_columns import PlainColumns, decode_plain_columns
    from lance_ops.file.container.single_pages import encode_single_page, encode_single_pages

__all__ = [
    "ALIGNMENT",
    "MAX_ROWS",
    "PADDING",
    "PLAIN_COLUMN",
    "Column",
    "ColumnWriter",
    "EncodedPage",
    "FieldWriter",
    "Footer",
    "HeldBatch",
    "Page",
    "PlainColumns",
    "WriteBytes",
    "check_no_overlap",
    "decode_any",
    "decode_column",
    "decode_encoding",
    "decode_extents",
    "decode_plain_columns",
    "encode_extents",
    "encode_single_page",
    "encode_single_pages",
]

_MODULES = {
    "ALIGNMENT": "footer",
    "MAX_ROWS": "column_metadata",
    "PADDING": "footer",
    "PLAIN_COLUMN": "column_metadata",
    "Column": "column_metadata",
    "ColumnWriter": "column_writer",
    "EncodedPage": "encoded_page",
    "FieldWriter": "column_writer",
    "Footer": "footer",
    "HeldBatch": "column_writer",
    "Page": "column_metadata",
    "PlainColumns": "plain_columns",
    "WriteBytes": "column_writer",
    "check_no_overlap": "footer",
    "decode_any": "column_metadata",
    "decode_column": "column_metadata",
    "decode_encoding": "column_metadata",
    "decode_extents": "footer",
    "decode_plain_columns": "plain_columns",
    "encode_extents": "footer",
    "encode_single_page": "single_pages",
    "encode_single_pages": "single_pages",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

"""The container of 2.x files: footer, offset tables and column metadata, and how a column's pages are collected."""

from lance_ops.file.container.column_metadata import MAX_ROWS, Column, Page, decode_any, decode_column, decode_encoding
from lance_ops.file.container.column_writer import PLAIN_COLUMN, ColumnWriter, FieldWriter, WriteBytes, end_columns
from lance_ops.file.container.encoded_page import EncodedPage
from lance_ops.file.container.footer import ALIGNMENT, PADDING, Footer, check_no_overlap, decode_extents, encode_extents
from lance_ops.file.container.plain_columns import PlainColumns, decode_plain_columns

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
    "end_columns",
]

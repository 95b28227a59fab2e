"""The layouts of 2.1 and 2.2 pages: one module for each layout reads and writes it."""

from lance_ops.file.v2_1.layouts.blob import encode_blob
from lance_ops.file.v2_1.layouts.constant import encode_constant
from lance_ops.file.v2_1.layouts.contract import LeafRows, PageChoice, PageContext, PageLayout
from lance_ops.file.v2_1.layouts.equal_columns import EqualColumns, SameColumns
from lance_ops.file.v2_1.layouts.full_zip import encode_full_zip
from lance_ops.file.v2_1.layouts.joined_pages import JoinedPages
from lance_ops.file.v2_1.layouts.mini_block import MiniBlockPage, encode_equal_mini_blocks, encode_mini_block
from lance_ops.file.v2_1.layouts.mini_block_description import MiniBlockDescription, describe_mini_block
from lance_ops.file.v2_1.layouts.registry import layout_from_pb

__all__ = [
    "EqualColumns",
    "JoinedPages",
    "LeafRows",
    "MiniBlockDescription",
    "MiniBlockPage",
    "PageChoice",
    "PageContext",
    "PageLayout",
    "SameColumns",
    "describe_mini_block",
    "encode_blob",
    "encode_constant",
    "encode_equal_mini_blocks",
    "encode_full_zip",
    "encode_mini_block",
    "layout_from_pb",
]

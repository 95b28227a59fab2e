"""The layouts of 2.1 and 2.2 pages: one module for each layout reads and writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.file.v2_1.layouts.blob import encode_blob
    from lance_ops.file.v2_1.layouts.constant import encode_constant
    from lance_ops.file.v2_1.layouts.contract import PAGE_LAYOUT_URL, LeafRows, PageChoice, PageContext, PageLayout
    from lance_ops.file.v2_1.layouts.equal_columns import EqualColumns, SameColumns
    from lance_ops.file.v2_1.layouts.full_zip import encode_full_zip
    from lance_ops.file.v2_1.layouts.joined_pages import JoinedPages
    from lance_ops.file.v2_1.layouts.mini_block import MiniBlockPage, encode_equal_mini_blocks, encode_mini_block
    from lance_ops.file.v2_1.layouts.mini_block_description import MiniBlockDescription, describe_mini_block
    from lance_ops.file.v2_1.layouts.registry import layout_from_pb

__all__ = [
    "PAGE_LAYOUT_URL",
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

_MODULES = {
    "PAGE_LAYOUT_URL": "contract",
    "EqualColumns": "equal_columns",
    "JoinedPages": "joined_pages",
    "LeafRows": "contract",
    "MiniBlockDescription": "mini_block_description",
    "MiniBlockPage": "mini_block",
    "PageChoice": "contract",
    "PageContext": "contract",
    "PageLayout": "contract",
    "SameColumns": "equal_columns",
    "describe_mini_block": "mini_block_description",
    "encode_blob": "blob",
    "encode_constant": "constant",
    "encode_equal_mini_blocks": "mini_block",
    "encode_full_zip": "full_zip",
    "encode_mini_block": "mini_block",
    "layout_from_pb": "registry",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

"""Files of versions 2.1 and 2.2: a column for every leaf; levels in its pages store the nesting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.file.v2_1.assembly import assemble, concat_rows
    from lance_ops.file.v2_1.decoded_files import DECODED_FILES
    from lance_ops.file.v2_1.equal_pages import MAX_EQUAL_VALUES, encode_equal_pages
    from lance_ops.file.v2_1.page_encoder import encode_leaf_page
    from lance_ops.file.v2_1.page_reader import describe_joinable, open_page, read_joined, read_pages
    from lance_ops.file.v2_1.reader import V21File
    from lance_ops.file.v2_1.single_batch import SingleBatch, fits_single_batch
    from lance_ops.file.v2_1.writer import V21FieldWriter

__all__ = [
    "DECODED_FILES",
    "MAX_EQUAL_VALUES",
    "SingleBatch",
    "V21FieldWriter",
    "V21File",
    "assemble",
    "concat_rows",
    "describe_joinable",
    "encode_equal_pages",
    "encode_leaf_page",
    "fits_single_batch",
    "open_page",
    "read_joined",
    "read_pages",
]

_MODULES = {
    "DECODED_FILES": "decoded_files",
    "MAX_EQUAL_VALUES": "equal_pages",
    "SingleBatch": "single_batch",
    "V21FieldWriter": "writer",
    "V21File": "reader",
    "assemble": "assembly",
    "concat_rows": "assembly",
    "describe_joinable": "page_reader",
    "encode_equal_pages": "equal_pages",
    "encode_leaf_page": "page_encoder",
    "fits_single_batch": "single_batch",
    "open_page": "page_reader",
    "read_joined": "page_reader",
    "read_pages": "page_reader",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

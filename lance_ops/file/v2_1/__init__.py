"""Files of versions 2.1 and 2.2: a column for every leaf; levels in its pages store the nesting."""

from lance_ops.file.v2_1.assembly import assemble, concat_rows
from lance_ops.file.v2_1.page_reader import describe_joinable, open_page, read_joined, read_pages
from lance_ops.file.v2_1.reader import V21File
from lance_ops.file.v2_1.writer import V21FieldWriter

__all__ = [
    "V21FieldWriter",
    "V21File",
    "assemble",
    "concat_rows",
    "describe_joinable",
    "open_page",
    "read_joined",
    "read_pages",
]

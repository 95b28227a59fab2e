"""Files of versions 2.1 and 2.2: a column for every leaf, its pages with levels for the nesting."""

from lance_ops.file.v2_1.assembly import assemble, concat_rows
from lance_ops.file.v2_1.pages import read_pages
from lance_ops.file.v2_1.reader import StructuralColumns
from lance_ops.file.v2_1.shred import storage_of
from lance_ops.file.v2_1.writer import StructuralRoot

__all__ = [
    "StructuralColumns",
    "StructuralRoot",
    "assemble",
    "concat_rows",
    "read_pages",
    "storage_of",
]

"""Files of version 2.0: a column for every field, its pages described by trees of array encodings."""

from lance_ops.file.v2_0.fixed import read_values
from lance_ops.file.v2_0.reader import ArrayColumns
from lance_ops.file.v2_0.writer import ArrayRoot

__all__ = [
    "ArrayColumns",
    "ArrayRoot",
    "read_values",
]

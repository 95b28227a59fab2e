"""Files of version 2.0: a column for every field; a tree of array encodings describes each page."""

from lance_ops.file.v2_0.reader import V20File
from lance_ops.file.v2_0.writer import V20FieldWriter

__all__ = [
    "V20FieldWriter",
    "V20File",
]

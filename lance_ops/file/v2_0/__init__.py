"""Files of version 2.0: a column for every field; a tree of array encodings describes each page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.file.v2_0.reader import V20File
    from lance_ops.file.v2_0.writer import V20FieldWriter

__all__ = [
    "V20FieldWriter",
    "V20File",
]

_MODULES = {
    "V20FieldWriter": "writer",
    "V20File": "reader",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

"""Files of version 0.1: batches of rows, a page for every field and batch, no validity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.file.v0_1.dictionaries import Dictionaries
    from lance_ops.file.v0_1.page_statistics import stats_of_batch
    from lance_ops.file.v0_1.reader import V01File
    from lance_ops.file.v0_1.writer import V01Body

__all__ = [
    "Dictionaries",
    "V01Body",
    "V01File",
    "stats_of_batch",
]

_MODULES = {
    "Dictionaries": "dictionaries",
    "V01Body": "writer",
    "V01File": "reader",
    "stats_of_batch": "page_statistics",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

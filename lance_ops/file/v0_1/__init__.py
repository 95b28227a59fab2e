"""Files of version 0.1: batches of rows, a page for every field and batch, and no nulls anywhere."""

from lance_ops.file.v0_1.container import open_v0_1
from lance_ops.file.v0_1.dictionaries import Dictionaries
from lance_ops.file.v0_1.reader import BatchColumns
from lance_ops.file.v0_1.statistics import stats_of_batch
from lance_ops.file.v0_1.writer import BatchBody

__all__ = [
    "BatchBody",
    "BatchColumns",
    "Dictionaries",
    "open_v0_1",
    "stats_of_batch",
]

"""Files of version 0.1: batches of rows, a page for every field and batch, no validity."""

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

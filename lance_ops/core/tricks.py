"""The tricks of the operating system and of libraries that can be switched off: `LANCE_OPS_DISABLE=aio,reserve`.

A trick relies on a detail of a system or on a library's private parts, and saves time or memory. With the trick off the
results are the same. `docs/adr/0019-tricks-of-the-system.md` lists the tricks with their gains.
"""

from __future__ import annotations

import os
from enum import Enum

__all__ = ["Trick"]


class Trick(Enum):
    """Each value is the name that `LANCE_OPS_DISABLE` takes, a list separated by commas."""

    AIO = "aio"
    COMPILER_MEMORY = "compiler-memory"
    DATASET_IMPORT = "dataset-import"
    DECODED_FILES = "decoded-files"
    FILE_MAPPING = "file-mapping"
    KERNEL_CACHE = "kernel-cache"
    PLANNED_READS = "planned-reads"
    RESERVE = "reserve"
    SEALS = "seals"
    SMALL_READS = "small-reads"
    SPARK_ARCHIVES = "spark-archives"
    SYNCFS = "syncfs"
    UNALIGNED_WORDS = "unaligned-words"
    UNCOUNTED_ARRAYS = "uncounted-arrays"
    WATCHES = "watches"
    WRITEBACK = "writeback"

    def is_on(self) -> bool:
        """Return whether the trick may be used now. The environment is read at each call."""
        disabled = os.environ.get("LANCE_OPS_DISABLE")
        return not disabled or self.value not in disabled.split(",")

"""Begin to sync several open files at the same time, so that one commit of the file system's journal serves them all.

The caller may do other work before it waits. Files that Linux's asynchronous I/O does not take are synced in threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import wait

from lance_ops.store.local.aio import KERNEL_AIO, MOST_AT_ONCE, NOTHING_TO_SYNC
from lance_ops.store.process_resources import PROCESS_RESOURCES

__all__ = ["MOST_AT_ONCE", "begin_fsync"]


def begin_fsync(descriptors: Sequence[int]) -> Callable[[], None]:
    """Begin to sync at most `MOST_AT_ONCE` files and directories; return a function that waits for all of them.

    The caller closes the descriptors only after that function has returned. It raises `OSError` if one file could not
    be synced.
    """
    taken, wait_for_kernel = KERNEL_AIO.begin(descriptors)
    if taken == len(descriptors):
        return wait_for_kernel
    under_way = [PROCESS_RESOURCES.threads().submit(_fsync, descriptor) for descriptor in descriptors[taken:]]

    def finish() -> None:
        wait(under_way)
        wait_for_kernel()
        for done in under_way:
            done.result()

    return finish


def _fsync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NOTHING_TO_SYNC:
            raise

"""Delete files with a limit on deletes per second and on deletes at once."""

from __future__ import annotations

import time
from collections.abc import Sequence

from lance_ops.core.map_ordered import map_ordered
from lance_ops.store import ObjectInfo, Store

__all__ = ["Pace", "delete_files"]


class Pace:
    """Waits so that at most `per_second` deletions happen in a second; None sets no limit."""

    def __init__(self, per_second: int | None) -> None:
        self.is_set = per_second is not None
        self._interval = 1 / per_second if per_second else 0.0
        self._next = time.monotonic()

    def wait(self) -> None:
        """Return when the next deletion may begin."""
        if self._interval:
            time.sleep(max(self._next - time.monotonic(), 0))
            self._next = max(self._next, time.monotonic()) + self._interval


def delete_files(
    store: Store, infos: Sequence[ObjectInfo], pace: Pace, at_once: int
) -> tuple[list[ObjectInfo], list[ObjectInfo]]:
    """Delete files; return those that are deleted, and those that the store failed to delete.

    With a pace one file is deleted after the other; otherwise many in one request, if the store has such a request.
    """

    def delete(paths: Sequence[str]) -> set[str]:
        pace.wait()
        return store.delete_several(paths)

    paths = [info.path for info in infos]
    share, workers = (1, 1) if pace.is_set else (store.deleted_at_once, at_once)
    requests = [paths[at : at + share] for at in range(0, len(paths), share)]
    failed = set().union(*map_ordered(delete, requests, workers, workers))
    return [info for info in infos if info.path not in failed], [info for info in infos if info.path in failed]

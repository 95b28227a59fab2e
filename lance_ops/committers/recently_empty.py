"""Remember for five seconds where this process looked for a dataset and found none.

The commit of a first version then needs no look of its own. It loses nothing by that: the create of version 1 fails if
another writer has made it meanwhile, and the look after the commit finds the versions of a writer whose version 1 has
been cleaned up. The create does not fail if another writer has named its version 1 by the other scheme meanwhile. Then
both stand, and no one can open the dataset; the look after the commit finds them, and the commit's outcome is unknown.
So a look does not serve for long.
"""

from __future__ import annotations

import os
import threading
import time

__all__ = ["RECENTLY_EMPTY", "RecentlyEmpty"]

_SECONDS = 5.0
"""At most: a write that takes longer hardly notices one more request."""
_MOST_PLACES = 1000


class RecentlyEmpty:
    """The places where the last look found no dataset. A key names the place and the client that looked."""

    def __init__(self) -> None:
        self.reset()

    def note(self, place: object, began: float) -> None:
        """Note that a look that began then, by `time.monotonic`, found no dataset at a place."""
        with self._lock:
            if len(self._looks) >= _MOST_PLACES:
                self._looks.clear()
            self._looks[place] = began

    def take(self, place: object) -> bool:
        """Return whether a look of the last five seconds found nothing at a place, and forget the look."""
        with self._lock:
            looked = self._looks.pop(place, None)
        return looked is not None and time.monotonic() - looked < _SECONDS

    def reset(self) -> None:
        """Forget all and renew the lock: in a forked child, the thread that held the lock does not exist."""
        self._looks: dict[object, float] = {}
        self._lock = threading.Lock()


RECENTLY_EMPTY = RecentlyEmpty()
os.register_at_fork(after_in_child=RECENTLY_EMPTY.reset)

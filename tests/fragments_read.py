"""Note the fragments that a read opens, one by one or several together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lance_ops.snapshot import Snapshot, open_alike
from lance_ops.table import Fragment

__all__ = ["note_fragments_read"]


def note_fragments_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list to which each opened fragment adds its id, until the test ends."""
    read: list[int] = []
    open_one = Snapshot.reader

    def noted(self: Snapshot, fragment: Fragment, threads: int = 1) -> Any:
        read.append(fragment.id)
        return open_one(self, fragment, threads)

    def noted_together(snapshot: Snapshot, fragments: Sequence[Fragment], *arguments: Any) -> Any:
        found = open_alike(snapshot, fragments, *arguments)
        if found is not None:
            read.extend(fragment.id for fragment in fragments)
        return found

    monkeypatch.setattr(Snapshot, "reader", noted)
    monkeypatch.setattr("lance_ops.reading.joined_fragments.open_alike", noted_together)
    return read

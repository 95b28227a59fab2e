"""A version's fragments split among tasks."""

from __future__ import annotations

from lance_ops.snapshot import Snapshot

__all__ = ["fragment_shares"]

_FRAGMENTS_PER_TASK = 16
_MAX_TASKS = 64


def fragment_shares(snapshot: Snapshot) -> list[tuple[int, ...]]:
    """Return the fragments' ids in shares, not too many of them: elsewhere, each task opens the version anew."""
    ids = [fragment.id for fragment in snapshot.fragments]
    share = max(_FRAGMENTS_PER_TASK, -(-len(ids) // _MAX_TASKS))
    return [tuple(ids[at : at + share]) for at in range(0, len(ids), share)]

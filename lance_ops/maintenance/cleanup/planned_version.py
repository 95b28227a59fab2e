"""Keep the version that long work was planned on, and all later ones, where a clean-up is to be expected."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from lance_ops.maintenance.cleanup.auto_cleanup import cleans_up_by_itself
from lance_ops.refs import pinned_with_later
from lance_ops.snapshot import Snapshot

__all__ = ["pinned_if_at_risk"]


def pinned_if_at_risk(current: Snapshot, first: Snapshot) -> AbstractContextManager[None]:
    """Pin the version `current` of an attempt, and all later ones, during the block, if a clean-up is to be expected.

    A commit must be compared with every version after the one that it was planned on, so a clean-up of any of them
    voids the work. A pin costs requests. It is written if commits to the table clean up, and for every attempt after
    the one on the version `first`.
    """
    if cleans_up_by_itself(current) or current.version != first.version:
        return pinned_with_later(current)
    return nullcontext()

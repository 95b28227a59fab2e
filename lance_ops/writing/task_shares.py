"""Split a version's fragments among tasks."""

from __future__ import annotations

from lance_ops.snapshot import Snapshot, check_rows_are_stored

__all__ = ["fragment_ids_per_task"]

_FRAGMENTS_PER_TASK = 16
_MAX_TASKS = 64


def fragment_ids_per_task(snapshot: Snapshot) -> list[tuple[int, ...]]:
    """Return the fragment ids of each task. There are few tasks, because each one opens the version again.

    Raises `ReadTooLarge` as `check_rows_are_stored` does: no task sees how many rows the others have.
    """
    check_rows_are_stored(snapshot, sum(each.physical_rows for each in snapshot.fragments), snapshot.fragments)
    ids = [fragment.id for fragment in snapshot.fragments]
    share = max(_FRAGMENTS_PER_TASK, -(-len(ids) // _MAX_TASKS))
    return [tuple(ids[at : at + share]) for at in range(0, len(ids), share)]

"""Add up how many bytes each field takes in the data files of a version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from lance_ops.core.map_ordered import map_ordered
from lance_ops.snapshot.snapshot import Snapshot

__all__ = ["field_sizes"]


def field_sizes(snapshot: Snapshot) -> Mapping[int, int]:
    """Return the bytes of each field's pages over all fragments, by field id; 0 for a field without its own column.

    0.1 files do not record these sizes and are not counted.
    """
    found: Counter[int] = Counter()
    fragments = snapshot.manifest.fragments
    at_once = min(snapshot.calls_at_once, len(fragments))
    for sizes in map_ordered(lambda each: snapshot.reader(each).field_sizes(), fragments, at_once, at_once):
        found.update(sizes)
    return {node.id: found[node.id] for node in snapshot.schema.walk()}

"""Write the deletion files that hide more rows of some fragments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lance_ops.core.map_ordered import map_ordered
from lance_ops.core.names import new_deletion_file_id
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment, encode_deletion_vector
from lance_ops.transactions import removing_on_failure

__all__ = ["HiddenRows", "hide_rows"]

_WRITTEN_AHEAD = 16


@dataclass(frozen=True)
class HiddenRows:
    """Fragments with a larger deletion vector, the ids of those without a row left, and the files written."""

    updated: tuple[Fragment, ...]
    removed: tuple[int, ...]
    paths: tuple[str, ...]


def hide_rows(snapshot: Snapshot, offsets: Mapping[int, BitMap]) -> HiddenRows:
    """Write a cumulative vector for each fragment; `offsets` are physical ones, by fragment.

    When one cannot be written, nothing is left of the others. Who commits the fragments makes the files durable.
    """
    written: list[str] = []

    def hide_in(fragment_id: int) -> Fragment | None:
        fragment = snapshot.fragments_by_id[fragment_id]
        vector = snapshot.deletion_vector(fragment) | offsets[fragment_id]
        if len(vector) == fragment.physical_rows:
            return None
        deletion_file, data = encode_deletion_vector(vector, snapshot.version, new_deletion_file_id())
        thinned = replace(fragment, deletion_file=deletion_file)
        assert thinned.deletion_path is not None
        written.append(thinned.deletion_path)  # first, because a put that fails may have put it there
        snapshot.store.put(thinned.deletion_path, data, durable=False)
        return thinned

    ids = sorted(offsets)
    with removing_on_failure(snapshot.store, written):
        outcomes = dict(
            zip(ids, map_ordered(hide_in, ids, min(snapshot.calls_at_once, len(ids)), _WRITTEN_AHEAD), strict=True)
        )
    return HiddenRows(
        updated=tuple(fragment for fragment in outcomes.values() if fragment is not None),
        removed=tuple(fragment_id for fragment_id, fragment in outcomes.items() if fragment is None),
        paths=tuple(written),
    )

"""Add up how many bytes each field takes in the data files of a version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lance_ops.core.schema import Schema
from lance_ops.core.threads import map_ordered
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import Fragment

__all__ = ["field_sizes", "projected_sizes"]

_SAMPLED_FRAGMENTS = 16
_NOT_WORTH_OPENING = 16 * 1024**2
"""Bytes of all files together, below which nobody needs to know how they are shared among columns."""


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


def projected_sizes(snapshot: Snapshot, fragments: Sequence[Fragment], schema: Schema) -> dict[int, int]:
    """Return about how many bytes the columns of `schema` take in each fragment, by the fragment's id.

    The column metadata of a few fragments says which share of their files the columns are. The other fragments' files
    are not opened, and count with the same share. Files count whole if the schema has every column that is stored in
    them, or if they are small together.
    """
    whole = {fragment.id: sum(file.file_size_bytes for file in fragment.files) for fragment in fragments}
    if sum(whole.values()) <= _NOT_WORTH_OPENING:
        return whole
    step = -(-len(fragments) // _SAMPLED_FRAGMENTS)
    sample = fragments[::step]
    if schema.num_leaves == snapshot.schema.num_leaves and not _hold_dropped_columns(snapshot, sample):
        return whole
    at_once = min(snapshot.calls_at_once, len(sample))
    sizes = [*map_ordered(lambda each: snapshot.reader(each).encoded_bytes(schema), sample, at_once, at_once)]
    if len(sample) == len(fragments):
        return {fragment.id: size for fragment, size in zip(sample, sizes, strict=True)}
    of_files = max(sum(whole[fragment.id] for fragment in sample), 1)
    return {fragment_id: size * sum(sizes) // of_files for fragment_id, size in whole.items()}


def _hold_dropped_columns(snapshot: Snapshot, fragments: Sequence[Fragment]) -> bool:
    """Return whether a file of the fragments has a field that the version's schema does not have."""
    known = {node.id for node in snapshot.schema.walk()}
    return any(not known.issuperset(file.fields) for fragment in fragments for file in fragment.files)

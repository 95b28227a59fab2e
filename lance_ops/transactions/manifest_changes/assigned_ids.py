"""Assign ids to new fragments and stable row ids to new rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.table import Fragment, Manifest
from lance_ops.table.rows import (
    RowIds,
    count_row_ids,
    decode_row_ids,
    encode_row_id_range,
    encode_row_ids,
    encode_uniform_versions,
)

__all__ = ["UNASSIGNED", "assign_fragment_ids", "assign_ids", "assign_row_ids"]

UNASSIGNED = 0
"""The id of a fragment that has none yet. The first fragment of a table gets the same number as its real id."""


def assign_fragment_ids(
    fragments: Iterable[Fragment], max_fragment_id: int | None
) -> tuple[tuple[Fragment, ...], int | None]:
    """Assign ids to the fragments that have none; return all fragments, and the highest id assigned so far.

    `max_fragment_id` is the highest id before.
    """
    next_id = 0 if max_fragment_id is None else max_fragment_id + 1
    numbered = []
    for fragment in fragments:
        if fragment.id == UNASSIGNED:
            fragment = replace(fragment, id=next_id)
            next_id += 1
        numbered.append(fragment)
    if not numbered:
        return (), max_fragment_id
    return tuple(numbered), max(next_id - 1, *(fragment.id for fragment in numbered))


def assign_ids(fragments: Iterable[Fragment], manifest: Manifest) -> tuple[tuple[Fragment, ...], int | None, int]:
    """Assign ids to fragments whose rows are all new; with stable row ids, also row ids and row versions.

    Returns the fragments, and the manifest's new `max_fragment_id` and `next_row_id`.
    """
    numbered, max_fragment_id = assign_fragment_ids(fragments, manifest.max_fragment_id)
    if not manifest.uses_stable_row_ids:
        return numbered, max_fragment_id, manifest.next_row_id
    numbered, next_row_id = assign_row_ids(numbered, manifest.next_row_id)
    stamped = []
    for fragment in numbered:
        versions = encode_uniform_versions(manifest.version + 1, fragment.physical_rows)
        stamped.append(fragment.with_sequences(last_updated_at_versions=versions, created_at_versions=versions))
    return tuple(stamped), max_fragment_id, next_row_id


def assign_row_ids(fragments: Iterable[Fragment], next_row_id: int) -> tuple[tuple[Fragment, ...], int]:
    """Assign row ids to the rows of each fragment that have none; they follow the rows that have one.

    Returns the fragments and the next free row id.
    """
    done = []
    for fragment in fragments:
        rows = fragment.physical_rows
        if fragment.row_ids is None:
            fragment = fragment.with_sequences(row_ids=encode_row_id_range(next_row_id, rows))
            next_row_id += rows
        elif not isinstance(fragment.row_ids, bytes):
            raise UnsupportedFeature("row ids in an external file", f"fragment {fragment.id}")
        else:
            where = f"fragment {fragment.id}"
            known = count_row_ids(fragment.row_ids, where)
            if known > rows:
                raise InvalidInput(f"{where} brings {known} row ids for {rows} rows")
            if known < rows:
                kept = decode_row_ids(fragment.row_ids, known, where)
                new = RowIds.counting_from(next_row_id, rows - known)
                fragment = fragment.with_sequences(row_ids=encode_row_ids(RowIds.joined((kept, new))))
                next_row_id += rows - known
        done.append(fragment)
    return tuple(done), next_row_id

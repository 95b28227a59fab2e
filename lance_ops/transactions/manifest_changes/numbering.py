"""Give new fragments their ids, and their rows theirs."""

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

__all__ = ["UNASSIGNED", "number_fragments", "number_new_rows", "with_row_ids"]

UNASSIGNED = 0
"""The id of a fragment that no commit has numbered yet. The first fragment of a table really is 0."""


def number_fragments(
    fragments: Iterable[Fragment], max_fragment_id: int | None
) -> tuple[tuple[Fragment, ...], int | None]:
    """Number the fragments that have no id; return them and the highest id given out, which was `max_fragment_id`."""
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


def number_new_rows(fragments: Iterable[Fragment], manifest: Manifest) -> tuple[tuple[Fragment, ...], int | None, int]:
    """Number fragments of rows that are all new: ids, and in a table of stable row ids theirs and their version.

    Returns them, and the manifest's `max_fragment_id` and `next_row_id` with them.
    """
    numbered, max_fragment_id = number_fragments(fragments, manifest.max_fragment_id)
    if not manifest.uses_stable_row_ids:
        return numbered, max_fragment_id, manifest.next_row_id
    numbered, next_row_id = with_row_ids(numbered, manifest.next_row_id)
    stamped = []
    for fragment in numbered:
        versions = encode_uniform_versions(manifest.version + 1, fragment.physical_rows)
        stamped.append(replace(fragment, last_updated_at_versions=versions, created_at_versions=versions))
    return tuple(stamped), max_fragment_id, next_row_id


def with_row_ids(fragments: Iterable[Fragment], next_row_id: int) -> tuple[tuple[Fragment, ...], int]:
    """Complete the row ids: rows beyond those a fragment has ids for are new, and get the next ones.

    Returns the fragments and the id after the last one given out.
    """
    done = []
    for fragment in fragments:
        rows = fragment.physical_rows
        if fragment.row_ids is None:
            fragment = replace(fragment, row_ids=encode_row_id_range(next_row_id, rows))
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
                fresh = RowIds.counting_from(next_row_id, rows - known)
                fragment = replace(fragment, row_ids=encode_row_ids(RowIds.joined((kept, fresh))))
                next_row_id += rows - known
        done.append(fragment)
    return tuple(done), next_row_id

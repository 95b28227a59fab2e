"""Give new fragments their ids, and their rows theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.table import Fragment, Manifest
from lance_ops.table.row_ids import (
    count_row_ids,
    decode_row_ids,
    encode_row_id_range,
    encode_row_ids,
    encode_uniform_versions,
)
from lance_ops.table.row_runs import RowIds

__all__ = ["UNASSIGNED", "number_fragments", "number_new_rows", "with_row_ids"]

UNASSIGNED = 0
"""The id of a fragment that no commit has numbered yet. The first fragment of a table really is 0."""


def number_fragments(manifest: Manifest, fragments: Iterable[Fragment]) -> tuple[Manifest, tuple[Fragment, ...]]:
    """Number the fragments that have no id; return them and the manifest that knows the highest id given out."""
    next_id = manifest.next_fragment_id
    numbered = []
    for fragment in fragments:
        if fragment.id == UNASSIGNED:
            fragment = replace(fragment, id=next_id)
            next_id += 1
        numbered.append(fragment)
    highest = max((fragment.id for fragment in numbered), default=-1)
    return replace(manifest, max_fragment_id=max(next_id - 1, highest)) if numbered else manifest, tuple(numbered)


def number_new_rows(manifest: Manifest, fragments: Iterable[Fragment]) -> tuple[Manifest, tuple[Fragment, ...]]:
    """Number fragments of rows that are all new: ids, and in a table of stable row ids theirs and their version."""
    manifest, numbered = number_fragments(manifest, fragments)
    if not manifest.uses_stable_row_ids:
        return manifest, numbered
    manifest, numbered = with_row_ids(manifest, numbered)
    stamped = []
    for fragment in numbered:
        versions = encode_uniform_versions(manifest.version + 1, fragment.physical_rows)
        stamped.append(replace(fragment, last_updated_at_versions=versions, created_at_versions=versions))
    return manifest, tuple(stamped)


def with_row_ids(manifest: Manifest, fragments: Iterable[Fragment]) -> tuple[Manifest, tuple[Fragment, ...]]:
    """Complete the row ids: rows beyond those a fragment has ids for are new, and get the next ones."""
    next_row_id = manifest.next_row_id
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
    return replace(manifest, next_row_id=next_row_id), tuple(done)

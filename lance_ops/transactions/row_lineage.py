"""Carry the versions of rows along, in a table of stable row ids: which brought a row, and which last changed it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.table import Fragment, RowSequence
from lance_ops.table.row_ids import (
    FIRST_VERSION,
    decode_row_ids,
    decode_versions,
    encode_uniform_versions,
    encode_versions,
)

__all__ = ["stamp_all_rows", "stamp_moved_rows", "stamp_rewritten_offsets"]

U64s = npt.NDArray[np.uint64]


def stamp_moved_rows(origins: Iterable[Fragment], fragments: Sequence[Fragment], version: int) -> tuple[Fragment, ...]:
    """Stamp fragments with their rows' versions: last changed now; brought when their origins say, or now."""
    known_ids, known_versions = _lineage(origins)
    stamped = []
    for fragment in fragments:
        ids = decode_row_ids(_inline(fragment.row_ids, fragment.id), fragment.physical_rows, _where(fragment.id))
        created = np.full(len(ids), version, np.uint64)
        if len(known_ids):
            slots = np.minimum(np.searchsorted(known_ids, ids), len(known_ids) - 1)
            moved = known_ids[slots] == ids
            created[moved] = known_versions[slots[moved]]
        stamped.append(
            replace(
                fragment,
                created_at_versions=encode_versions(created),
                last_updated_at_versions=encode_uniform_versions(version, fragment.physical_rows),
            )
        )
    return tuple(stamped)


def stamp_rewritten_offsets(fragment: Fragment, offsets: BitMap | None, version: int) -> Fragment:
    """Mark rows that got new values in place as changed now."""
    if not offsets:
        return fragment
    versions = _versions(fragment.last_updated_at_versions, fragment)
    versions[np.fromiter(offsets, np.int64, len(offsets))] = version
    return replace(fragment, last_updated_at_versions=encode_versions(versions))


def stamp_all_rows(fragment: Fragment, version: int) -> Fragment:
    """Mark every row as changed now."""
    return replace(fragment, last_updated_at_versions=encode_uniform_versions(version, fragment.physical_rows))


def _lineage(origins: Iterable[Fragment]) -> tuple[U64s, U64s]:
    """Return the row ids of the fragments, ascending, and the version that brought each row."""
    ids, versions = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for fragment in origins:
        ids.append(decode_row_ids(_inline(fragment.row_ids, fragment.id), fragment.physical_rows, _where(fragment.id)))
        versions.append(_versions(fragment.created_at_versions, fragment))
    all_ids, all_versions = np.concatenate(ids), np.concatenate(versions)
    order = np.argsort(all_ids)
    return all_ids[order], all_versions[order]


def _versions(sequence: RowSequence, fragment: Fragment) -> U64s:
    if sequence is None:
        return np.full(fragment.physical_rows, FIRST_VERSION, np.uint64)
    return decode_versions(_inline(sequence, fragment.id), fragment.physical_rows, _where(fragment.id)).copy()


def _inline(sequence: RowSequence, fragment_id: int) -> bytes:
    if not isinstance(sequence, bytes):
        raise UnsupportedFeature("row ids or versions in an external file", _where(fragment_id))
    return sequence


def _where(fragment_id: int) -> str:
    return f"fragment {fragment_id}"

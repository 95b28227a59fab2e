"""Keep the versions that created and last updated each row, in a table of stable row ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pyroaring import BitMap

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.table import Fragment, RowSequence
from lance_ops.table.rows import (
    FIRST_VERSION,
    RowIds,
    RowVersions,
    decode_row_ids,
    decode_versions,
    encode_uniform_versions,
    encode_versions,
    offsets_in,
)

__all__ = ["stamp_all_rows", "stamp_moved_rows", "stamp_rewritten_offsets"]


def stamp_moved_rows(origins: Iterable[Fragment], fragments: Sequence[Fragment], version: int) -> tuple[Fragment, ...]:
    """Set the versions of moved rows: updated in `version`, created in the version that `origins` record, if any."""
    ids_of = [_row_ids(fragment).expand()[0] for fragment in fragments]
    ids = np.sort(np.concatenate([np.empty(0, np.uint64), *ids_of]))
    created = np.full(len(ids), version, np.uint64)
    for origin in origins:
        moved, offsets = _row_ids(origin).find(ids)
        created[moved] = _versions(origin.created_at_versions, origin).at(offsets)
    return tuple(
        fragment.with_sequences(
            created_at_versions=encode_versions(RowVersions.of(created[np.searchsorted(ids, its_ids)])),
            last_updated_at_versions=encode_uniform_versions(version, fragment.physical_rows),
        )
        for fragment, its_ids in zip(fragments, ids_of, strict=True)
    )


def stamp_rewritten_offsets(fragment: Fragment, offsets: BitMap | None, version: int) -> Fragment:
    """Set `version` as the last update of the rows at `offsets`, which got new values in place."""
    if not offsets:
        return fragment
    versions = _versions(fragment.last_updated_at_versions, fragment).expand()
    versions[offsets_in(offsets)] = version
    return fragment.with_sequences(last_updated_at_versions=encode_versions(RowVersions.of(versions)))


def stamp_all_rows(fragment: Fragment, version: int) -> Fragment:
    """Set `version` as the last update of every row."""
    return fragment.with_sequences(last_updated_at_versions=encode_uniform_versions(version, fragment.physical_rows))


def _row_ids(fragment: Fragment) -> RowIds:
    return decode_row_ids(_inline(fragment.row_ids, fragment.id), fragment.physical_rows, _where(fragment.id))


def _versions(sequence: RowSequence, fragment: Fragment) -> RowVersions:
    if sequence is None:
        return RowVersions.uniform(FIRST_VERSION, fragment.physical_rows)
    return decode_versions(_inline(sequence, fragment.id), fragment.physical_rows, _where(fragment.id))


def _inline(sequence: RowSequence, fragment_id: int) -> bytes:
    if not isinstance(sequence, bytes):
        raise UnsupportedFeature("row ids or versions in an external file", _where(fragment_id))
    return sequence


def _where(fragment_id: int) -> str:
    return f"fragment {fragment_id}"

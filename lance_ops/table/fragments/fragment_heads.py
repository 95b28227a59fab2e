"""Read the heads of many fragments without decoding the fragments: their ids and how many rows they state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lance_ops.pb.manifest_parts_pb2 import ManifestHeads, ManifestParts
from lance_ops.wire import WireType, join_messages, parse_message, read_message_columns

__all__ = ["FragmentHeads", "heads_of"]

_ID, _DELETION_FILE, _PHYSICAL_ROWS, _NUM_DELETED_ROWS = 1, 3, 4, 4
"""Numbers of fields of `DataFragment`, the last one of `DeletionFile`."""

_MANY = 200
"""More fragments are read by numpy: the protobuf library makes an object of each, numpy takes its time for any."""


class FragmentHeads(NamedTuple):
    """Each fragment's id and physical rows, and the deleted rows of the fragments with a deletion file, by position."""

    ids: list[int]
    physical_rows: list[int]
    deleted_rows: dict[int, int]


def heads_of(messages: Sequence[bytes], path: str) -> FragmentHeads:
    """Return the heads of encoded fragments; `path` names their manifest in errors.

    Raises `CorruptFile` for a message that is no fragment.
    """
    found = _read_together(messages) if len(messages) > _MANY else None
    return _parse_each(messages, path) if found is None else found


def _parse_each(messages: Sequence[bytes], path: str) -> FragmentHeads:
    section = ManifestParts(fragments=messages).SerializeToString()
    heads = list(parse_message(ManifestHeads, section, path, "fragments").fragments)
    deletions = [(at, head.deletion_file) for at, head in enumerate(heads) if head.HasField("deletion_file")]
    return FragmentHeads(
        [head.id for head in heads],
        [head.physical_rows for head in heads],
        {at: deletion.num_deleted_rows for at, deletion in deletions},
    )


def _read_together(messages: Sequence[bytes]) -> FragmentHeads | None:
    """Return the heads; None for messages that are left to the protobuf library."""
    data, starts, stops = join_messages(messages)
    wanted = {_ID: WireType.NUMBER, _DELETION_FILE: WireType.BYTES, _PHYSICAL_ROWS: WireType.NUMBER}
    heads = read_message_columns(data, starts, stops, wanted)
    if heads is None:
        return None
    deletion_files = heads[_DELETION_FILE]
    owners = np.flatnonzero(deletion_files.is_stated)
    begins = deletion_files.numbers[owners]
    ends = begins + deletion_files.sizes[owners]
    deletions = read_message_columns(data, begins, ends, {_NUM_DELETED_ROWS: WireType.NUMBER})
    if deletions is None:
        return None
    deleted = zip(owners.tolist(), deletions[_NUM_DELETED_ROWS].numbers.tolist(), strict=True)
    return FragmentHeads(heads[_ID].numbers.tolist(), heads[_PHYSICAL_ROWS].numbers.tolist(), dict(deleted))

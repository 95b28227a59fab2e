"""Compute new columns of a large fragment by several tasks: each writes a piece, and one more joins the pieces.

A piece has a row for each offset of a range, as the fragment's column file has. Joining copies its pages.

Fragments are cut if a cluster has more slots than there are fragments. Otherwise only those are that would keep one
slot busy long after the others. How a fragment is cut depends on itself alone, so that another attempt finds the pieces
of a backfill that keeps its files. A piece's name states the data files and the deletion file of its fragment. Other
pieces are in a folder that the driver removes.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from itertools import pairwise

from lance_ops.core.file_names import DATA_DIR
from lance_ops.core.records import dataclass
from lance_ops.table import Fragment

__all__ = ["Piece", "cut_into_pieces", "new_piece_folder"]

_ROWS_OF_PIECE = 1 << 14
_BYTES_OF_PIECE = 4 << 20
_LEAST_PIECES = 8
"""A fragment of fewer pieces is computed by one task: a piece costs a task, and a file to write and to read."""
_PIECES_OF_LARGE = 64
_FAIR_SHARE_FACTOR = 2
"""If there are as many fragments as slots or more, a fragment is cut only if it has at least this many times the pieces
that one slot has to compute. It must also have `_PIECES_OF_LARGE`."""
_MOST_PIECES = 256


@dataclass(frozen=True)
class Piece:
    """The rows of a fragment from offset `first` to the one before `stop`, and the file for their columns."""

    fragment_id: int
    first: int
    stop: int
    path: str


def cut_into_pieces(fragments: Sequence[Fragment], folder: str, num_slots: int) -> dict[int, list[Piece]]:
    """Return the pieces, in order, of each fragment that is cut when `num_slots` tasks run at once."""
    worth = [_num_pieces(fragment) for fragment in fragments]
    least = _LEAST_PIECES
    if len(fragments) >= num_slots:
        least = max(_PIECES_OF_LARGE, _FAIR_SHARE_FACTOR * sum(worth) // max(num_slots, 1))
    return {
        fragment.id: _pieces(fragment, min(number, _MOST_PIECES), folder)
        for fragment, number in zip(fragments, worth, strict=True)
        if number >= least
    }


def _num_pieces(fragment: Fragment) -> int:
    size_bytes = sum(file.file_size_bytes for file in fragment.files)
    worth = max(fragment.physical_rows // _ROWS_OF_PIECE, size_bytes // _BYTES_OF_PIECE)
    return min(worth, fragment.physical_rows)


def _pieces(fragment: Fragment, num_pieces: int, folder: str) -> list[Piece]:
    state = repr([*(file.path for file in fragment.files), fragment.deletion_path])
    stem = f"{folder}/{fragment.id}-{hashlib.sha256(state.encode()).hexdigest()[:16]}"
    ends = [fragment.physical_rows * number // num_pieces for number in range(num_pieces + 1)]
    return [Piece(fragment.id, first, stop, f"{stem}-{first}-{stop}.piece") for first, stop in pairwise(ends)]


def new_piece_folder() -> str:
    """Return a fresh folder for the pieces of one backfill, relative to the table's root."""
    return f"{DATA_DIR}/backfill-{uuid.uuid4().hex}"

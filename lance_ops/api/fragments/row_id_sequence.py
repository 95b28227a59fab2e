"""`RowIdSequence`: the stable row ids of one fragment, under the reference's name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lance_ops.api.argument_checks import row_numbers
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.table import RowIdMeta
from lance_ops.table.rows import RowIds, count_row_ids, decode_row_ids, encode_row_ids

__all__ = ["RowIdSequence"]

_PLACE = "inline row ids"
_MOST_IDS = 1 << 32
_SHOWN = 10


class RowIdSequence:
    """Stable row ids in the order of a fragment's rows.

    Raises `InvalidInput` for an id that occurs twice or is no unsigned integer of 64 bits, and `WrongType` for what is
    no integer.
    """

    def __init__(self, row_ids: Iterable[int] | pa.Array) -> None:
        given = row_ids if isinstance(row_ids, (pa.Array, pa.ChunkedArray, np.ndarray)) else list(row_ids)
        self._ids = row_numbers(given, "row_ids", np.uint64)
        found, times = np.unique(self._ids, return_counts=True)
        if len(found) < len(self._ids):
            raise InvalidInput(f"row id {found[times > 1][0]} occurs more than once in {len(self._ids)} row ids")

    @classmethod
    def from_inline_metadata(cls, metadata: RowIdMeta) -> RowIdSequence:
        """Read the inline ids of a fragment's `row_id_meta`.

        Raises `UnsupportedFeature` for ids in an external file, and `CorruptFile` for bytes that hold no ids. Raises
        `InvalidInput` for more ids than a fragment can have rows.
        """
        if not isinstance(metadata.stored, bytes):
            raise UnsupportedFeature("reading row ids of an external file without its table", metadata.stored.path)
        count = count_row_ids(metadata.stored, _PLACE)
        if count > _MOST_IDS:
            raise InvalidInput(f"a fragment has {_MOST_IDS} rows at most, not {count}")
        return cls(decode_row_ids(metadata.stored, count, _PLACE).expand()[0])

    def to_inline_metadata(self) -> RowIdMeta:
        """Return the ids as a fragment's `row_id_meta`."""
        return RowIdMeta(encode_row_ids(RowIds.of(self._ids)))

    def to_pyarrow(self) -> pa.Array:
        """Return the ids as an array of unsigned integers of 64 bits."""
        return pa.array(self._ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self._ids.tolist())

    def __len__(self) -> int:
        return len(self._ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowIdSequence) and np.array_equal(self._ids, other._ids)

    def __hash__(self) -> int:
        return hash(self._ids.tobytes())

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self._ids[:_SHOWN].tolist()))
        return f"RowIdSequence([{shown}{', …' if len(self) > _SHOWN else ''}])"

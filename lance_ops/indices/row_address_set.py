"""The rows that an index search found: a compressed bitmap of offsets for each fragment.

The same class holds stable row ids, with an id's high and low 32 bits in place of fragment and offset. `RowKey` in
`contract` says which of the two an index stores.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_ops.core.addresses import fragment_of, offset_of, row_addrs
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.table.rows import bitmap_of, offsets_in

__all__ = ["FragmentIds", "RowAddressSet"]


class FragmentIds(Protocol):
    """A set, a bitmap, or anything else that can test whether it contains a fragment id."""

    def __contains__(self, fragment_id: int, /) -> bool: ...


@dataclass(frozen=True, eq=False)
class RowAddressSet:
    """Row addresses. If `exact` is false, the set may also hold rows that do not match.

    An index that knows zones but not rows (a zone map, a bloom filter) gives such a set; the reader must filter its
    rows again. Every row that matches is in the set in either case.

    `bitmaps` holds no empty bitmap. Sets share bitmaps, so copy one before changing it.
    """

    bitmaps: Mapping[int, BitMap] = field(default_factory=lambda: MappingProxyType({}))
    exact: bool = True

    @classmethod
    def from_addresses(cls, addresses: npt.ArrayLike, *, exact: bool = True) -> RowAddressSet:
        """Collect row addresses, shape (n,), in any order and with repeats."""
        ordered = np.sort(np.asarray(addresses, dtype=np.uint64))
        fragments, offsets = fragment_of(ordered), offset_of(ordered).astype(np.uint32)
        starts = np.flatnonzero(np.diff(fragments, prepend=fragments[:1] ^ np.uint64(1)))
        return cls(
            {
                int(fragments[start]): bitmap_of(offsets[start:stop])
                for start, stop in pairwise([*starts.tolist(), len(ordered)])
            },
            exact,
        )

    @classmethod
    def from_bitmaps(cls, bitmaps: Mapping[int, BitMap], *, exact: bool = True) -> RowAddressSet:
        """Collect a bitmap of offsets for each fragment; empty ones are left out."""
        return cls({fragment_id: bitmap for fragment_id, bitmap in bitmaps.items() if bitmap}, exact)

    @classmethod
    def union(cls, sets: Iterable[RowAddressSet]) -> RowAddressSet:
        """Return the rows of all sets; exact if all of them are. This costs less than repeated `|`."""
        bitmaps: dict[int, BitMap] = {}
        exact = True
        for rows in sets:
            exact = exact and rows.exact
            for fragment_id, bitmap in rows.bitmaps.items():
                bitmaps.setdefault(fragment_id, BitMap()).update(bitmap)
        return cls(bitmaps, exact)

    @property
    def fragment_ids(self) -> list[int]:
        """The fragments that hold a row of the set, ascending."""
        return sorted(self.bitmaps)

    def offsets(self, fragment_id: int) -> BitMap:
        """Return the rows of the set in one fragment, as physical offsets."""
        return self.bitmaps.get(fragment_id, BitMap())

    def addresses(self) -> Uint64Array:
        """Return all row addresses, ascending, shape (len(self),)."""
        parts = [row_addrs(fragment_id, offsets_in(bitmap)) for fragment_id, bitmap in self]
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    def restrict(self, fragment_ids: FragmentIds) -> RowAddressSet:
        """Keep the rows of these fragments."""
        kept = {fragment_id: bitmap for fragment_id, bitmap in self.bitmaps.items() if fragment_id in fragment_ids}
        return RowAddressSet(kept, self.exact)

    def __iter__(self) -> Iterator[tuple[int, BitMap]]:
        """Yield (fragment id, offsets), fragments ascending."""
        return ((fragment_id, self.bitmaps[fragment_id]) for fragment_id in self.fragment_ids)

    def __len__(self) -> int:
        return sum(map(len, self.bitmaps.values()))

    def __contains__(self, row_address: int) -> bool:
        return (row_address & 0xFFFF_FFFF) in self.offsets(row_address >> 32)

    def __or__(self, other: RowAddressSet) -> RowAddressSet:
        return self._combine(other, self.bitmaps.keys() | other.bitmaps.keys(), BitMap.__or__)

    def __and__(self, other: RowAddressSet) -> RowAddressSet:
        return self._combine(other, self.bitmaps.keys() & other.bitmaps.keys(), BitMap.__and__)

    def __sub__(self, other: RowAddressSet) -> RowAddressSet:
        """Return the rows that are not in `other`.

        Raises `InvalidInput` if `other` is not exact: rows that it should not hold would be lost.
        """
        if not other.exact:
            raise InvalidInput("rows that may match cannot be subtracted: filter them first")
        return self._combine(other, self.bitmaps.keys(), BitMap.__sub__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowAddressSet):
            return NotImplemented
        return self.exact == other.exact and dict(self.bitmaps) == dict(other.bitmaps)

    __hash__ = None  # type: ignore[assignment]  # bitmaps have no hash

    def __repr__(self) -> str:
        return f"RowAddressSet({len(self)} rows of {len(self.bitmaps)} fragments, exact={self.exact})"

    def _combine(
        self, other: RowAddressSet, fragment_ids: Collection[int], combine: Callable[[BitMap, BitMap], BitMap]
    ) -> RowAddressSet:
        combined = {
            fragment_id: combine(self.offsets(fragment_id), other.offsets(fragment_id)) for fragment_id in fragment_ids
        }
        return RowAddressSet.from_bitmaps(combined, exact=self.exact and other.exact)

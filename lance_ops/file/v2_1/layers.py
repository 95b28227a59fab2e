"""The layers of a column's nesting as values (`Items`, `Lists`, `FixedLists`): `shred` makes them, `levels` encodes."""

from __future__ import annotations

from lance_ops.core.ndarrays import BoolArray, Int64Array
from lance_ops.core.records import dataclass

__all__ = ["FixedLists", "Items", "Layer", "Lists"]


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A layer of structs or leaves; `validity` None means that none is null."""

    length: int
    validity: BoolArray | None = None

    def copy(self) -> Items:
        """Return the same layer in memory of its own."""
        return self  # validity was unpacked from Arrow's bitmap, so it is a copy already


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """A layer of lists; `offsets` has one entry more than there are lists."""

    offsets: Int64Array
    validity: BoolArray | None = None

    @property
    def length(self) -> int:
        """Number of lists."""
        return len(self.offsets) - 1

    def copy(self) -> Lists:
        """Return the same layer in memory of its own."""
        return Lists(self.offsets.copy(), self.validity)


@dataclass(frozen=True, slots=True, eq=False)
class FixedLists:
    """A layer of lists of one size each, over structs; a null one keeps its slots below."""

    length: int
    dimension: int
    validity: BoolArray | None = None

    def copy(self) -> FixedLists:
        """Return the same layer in memory of its own."""
        return self


Layer = Items | Lists | FixedLists

"""What holds a subject's rows: versions, files, indices and tags, by branch, and why."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

from pyroaring import BitMap

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot

__all__ = ["BranchHoldings", "Cause", "Holdings", "Why"]


class Cause(Enum):
    """Why a version is taken to hold the rows, in words for people."""

    FILES = "it names files that store the rows"
    UNSEARCHED = "its columns differ, so that the filter cannot search it"
    UNSEARCHED_FILES = "it names files of a version that the filter cannot search"
    INDEX = "an index may have entries of the rows"
    TRANSACTION = "its transaction states a value of the rows"
    METADATA = "its config or metadata states a value of the rows"


@dataclass(frozen=True)
class Why:
    """Why a version is taken to hold the rows; `index` has the name of the index that may have entries of them."""

    cause: Cause
    index: str = ""

    def __str__(self) -> str:
        return f"index {self.index} may have entries of the rows" if self.index else self.cause.value


@dataclass
class BranchHoldings:
    """What holds the subject's rows on one branch.

    `rows` has the physical offsets at which the head's fragments store them, by fragment.
    `pins` has the path of a pin of running work, beneath the branch's root, for each holding version that one keeps.
    `unwritable` has the error for each version that this release may read, and not write.
    """

    name: str
    head: Snapshot
    rows: dict[int, BitMap] = field(default_factory=dict)
    tainted_fragments: set[int] = field(default_factory=set)
    stale_indices: set[str] = field(default_factory=set)
    holding: dict[int, Why] = field(default_factory=dict)
    clean: set[int] = field(default_factory=set)
    pins: dict[int, str] = field(default_factory=dict)
    unwritable: dict[int, UnsupportedFeature] = field(default_factory=dict)

    @property
    def live_rows(self) -> dict[int, BitMap]:
        """The rows of the head that readers see, by fragment."""
        fragments = self.head.fragments_by_id
        live = {key: rows - self.head.deletion_vector(fragments[key]) for key, rows in self.rows.items()}
        return {key: rows for key, rows in live.items() if rows}

    @property
    def num_live_rows(self) -> int:
        """How many rows readers of the head see."""
        return sum(map(len, self.live_rows.values()))

    @property
    def head_holds(self) -> bool:
        """Whether the newest version holds the rows."""
        return self.head.version in self.holding

    @property
    def removable(self) -> tuple[int, ...]:
        """The older versions to remove.

        If the filter cannot search the newest version, other versions that it cannot search stay with it: the branch
        would not be known to be clean without them.
        """
        head = self.holding.get(self.head.version)
        kept = head.cause if head is not None and head.cause is Cause.UNSEARCHED else None
        return tuple(
            version for version, why in self.holding.items() if version != self.head.version and why.cause is not kept
        )

    @property
    def removable_now(self) -> tuple[int, ...]:
        """The older versions to remove that no running work keeps."""
        return tuple(version for version in self.removable if version not in self.pins)


@dataclass
class Holdings:
    """What holds a subject's rows, by branch; the main branch is the last."""

    branches: tuple[BranchHoldings, ...]
    tags: dict[str, tuple[str, int]] = field(default_factory=dict)
    detached: dict[int, Why] = field(default_factory=dict)
    files: frozenset[str] = frozenset()
    values: frozenset[bytes] = field(default=frozenset(), repr=False)

    @property
    def main(self) -> BranchHoldings:
        """The main branch."""
        return self.branches[-1]

    @property
    def is_clean(self) -> bool:
        """Whether nothing holds the rows."""
        return not self.detached and not any(branch.holding for branch in self.branches)

    @property
    def num_live_rows(self) -> int:
        """How many rows readers of the heads see."""
        return sum(branch.num_live_rows for branch in self.branches)

    def num_removed_for(self, *causes: Cause) -> int:
        """Return how many versions an erasure would remove for one of these causes."""
        return sum(branch.holding[each].cause in causes for branch in self.branches for each in branch.removable)

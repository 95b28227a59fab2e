"""Choose the groups of fragments whose rewrite is worth its bytes.

A planned group may hold one large fragment among small ones. If the group as a whole does not pay back, it is cut at
its largest fragment, and both sides are judged again. So small fragments are merged with each other first, and with a
large one when there are enough of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lance_ops.core.records import dataclass
from lance_ops.maintenance.compaction import CompactionOptions, CompactionPlan
from lance_ops.maintenance.debt.rates import Rates
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment

__all__ = ["FragmentSize", "Rewrite", "fitting", "fragment_sizes", "worthwhile"]


@dataclass(frozen=True)
class FragmentSize:
    """The rows and the stored bytes of a fragment. Deleted rows count as their share of the bytes."""

    id: int
    num_live_rows: int
    num_deleted_rows: int
    size_bytes: int

    @property
    def deleted_bytes(self) -> float:
        """The bytes of the deleted rows."""
        physical = self.num_live_rows + self.num_deleted_rows
        return self.size_bytes * self.num_deleted_rows / physical if physical else 0.0


@dataclass(frozen=True)
class Rewrite:
    """Neighbouring fragments to write as one sequence of rows: what each read gains, and the price of the rewrite."""

    fragment_ids: tuple[int, ...]
    gain_bytes: float
    cost_bytes: int

    @classmethod
    def of(cls, fragments: Sequence[FragmentSize], target_rows: int, rates: Rates, cost_ratio: float) -> Rewrite:
        """Price a rewrite of these fragments into ones of `target_rows` rows."""
        num_after = -(-sum(each.num_live_rows for each in fragments) // target_rows)
        dropped = sum(each.deleted_bytes for each in fragments)
        return cls(
            tuple(each.id for each in fragments),
            rates.read_cost(dropped, len(fragments) - num_after),
            round(sum(each.size_bytes for each in fragments) * cost_ratio),
        )


def fragment_sizes(snapshot: Snapshot) -> dict[int, FragmentSize]:
    """Return the sizes of a version's fragments by id, from its manifest."""
    return {fragment.id: _size(snapshot, fragment) for fragment in snapshot.fragments}


def worthwhile(
    plan: CompactionPlan,
    sizes: dict[int, FragmentSize],
    rates: Rates,
    cost_ratio: float,
    *,
    all_of_them: bool = False,
) -> tuple[Rewrite, ...]:
    """Return the rewrites of a plan that pay back, or all that gain anything; the best gain for its cost first."""
    found: list[Rewrite] = []
    for task in plan.tasks:
        group = [sizes[fragment_id] for fragment_id in task.fragment_ids]
        found += _worthwhile(group, plan.options, rates, cost_ratio, all_of_them=all_of_them)
    return tuple(sorted(found, key=lambda each: rates.score(each.gain_bytes, each.cost_bytes), reverse=True))


def fitting(rewrites: Iterable[Rewrite], max_bytes: int | None) -> tuple[Rewrite, ...]:
    """Return the first rewrites that cost at most `max_bytes` together; one that does not fit is passed over."""
    chosen = []
    for each in rewrites:
        if max_bytes is None or each.cost_bytes <= max_bytes:
            chosen.append(each)
            max_bytes = None if max_bytes is None else max_bytes - each.cost_bytes
    return tuple(chosen)


def _worthwhile(
    group: Sequence[FragmentSize], options: CompactionOptions, rates: Rates, cost_ratio: float, *, all_of_them: bool
) -> Iterator[Rewrite]:
    waiting = [list(group)]  # a stack, because a group of many large fragments would recurse too deeply
    while waiting:
        part = waiting.pop()
        if not part:
            continue
        rewrite = Rewrite.of(part, options.target_rows_per_fragment, rates, cost_ratio)
        if not _would_be_planned(part, options):
            continue
        if rates.pays_back(rewrite.gain_bytes, rewrite.cost_bytes) or (all_of_them and rewrite.gain_bytes > 0):
            yield rewrite
            continue
        largest = max(range(len(part)), key=lambda at: part[at].size_bytes)
        waiting += [part[largest + 1 :], part[:largest]]


def _would_be_planned(part: Sequence[FragmentSize], options: CompactionOptions) -> bool:
    """Return whether a compaction of these fragments alone would rewrite them."""
    num_after = -(-sum(each.num_live_rows for each in part) // options.target_rows_per_fragment)
    return num_after < len(part) or (
        options.materialize_deletions
        and any(
            each.num_deleted_rows
            > options.materialize_deletions_threshold * (each.num_live_rows + each.num_deleted_rows)
            for each in part
        )
    )


def _size(snapshot: Snapshot, fragment: Fragment) -> FragmentSize:
    live = snapshot.num_live_rows(fragment)
    size_bytes = sum(file.file_size_bytes for file in fragment.files)
    return FragmentSize(fragment.id, live, fragment.physical_rows - live, size_bytes)

"""Choose the groups of fragments whose rewrite is worth its bytes.

A planned group may hold one large fragment among small ones. If the group as a whole does not pay back, it is cut at
its largest fragment, and both sides are judged again. So small fragments are merged with each other first, and with a
large one when there are enough of them.

A budget may allow only some rewrites. So each rewrite also has parts: it is cut at its largest fragment as long as a
side gains more for its bytes than the whole. The parts are chosen first, and the whole instead of them if the budget
allows it, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from lance_ops.core.records import dataclass
from lance_ops.maintenance.compaction import CompactionOptions, CompactionPlan
from lance_ops.maintenance.debt.rates import Rates
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment

__all__ = [
    "BudgetIncrement",
    "FragmentSize",
    "Rewrite",
    "budget_increments",
    "choose_rewrites",
    "fitting",
    "fragment_sizes",
    "with_parts",
    "worthwhile",
]

Key = TypeVar("Key", bound=Hashable)

_MOST_CUTS = 32
"""How often a group is cut into parts at most: each cut looks at all its fragments again."""


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
    """Neighbouring fragments to write as one sequence of rows: what each read gains, and the price of the rewrite.

    `parts` are rewrites of some of the fragments, the best of them with a better score than the whole. There are none
    if no part has one.
    """

    fragment_ids: tuple[int, ...]
    gain_bytes: float
    cost_bytes: int
    score: float = 0.0
    parts: tuple[Rewrite, ...] = ()

    @classmethod
    def of(cls, fragments: Sequence[FragmentSize], target_rows: int, rates: Rates, cost_ratio: float) -> Rewrite:
        """Price a rewrite of these fragments into ones of `target_rows` rows."""
        num_after = -(-sum(each.num_live_rows for each in fragments) // target_rows)
        dropped = sum(each.deleted_bytes for each in fragments)
        gain = rates.read_cost(dropped, len(fragments) - num_after)
        cost = round(sum(each.size_bytes for each in fragments) * cost_ratio)
        return cls(tuple(each.id for each in fragments), gain, cost, rates.score(gain, cost))


@dataclass(frozen=True)
class BudgetIncrement:
    """What a budget can add to what it has chosen: a rewrite, instead of those of its parts that are chosen."""

    rewrite: Rewrite
    score: float


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
    return tuple(sorted(found, key=lambda each: each.score, reverse=True))


def with_parts(
    rewrites: Iterable[Rewrite],
    sizes: dict[int, FragmentSize],
    options: CompactionOptions,
    rates: Rates,
    cost_ratio: float,
) -> Iterator[Rewrite]:
    """Yield the rewrites with their parts, which a budget may choose instead."""
    for each in rewrites:
        parts = _parts([sizes[fragment_id] for fragment_id in each.fragment_ids], options, rates, cost_ratio)
        yield replace(each, parts=tuple(parts))


def budget_increments(rewrites: Iterable[Rewrite]) -> Iterator[BudgetIncrement]:
    """Yield the parts of each rewrite, and after them the whole, with the score of what it adds to them."""
    for whole in rewrites:
        if not whole.parts:
            yield BudgetIncrement(whole, whole.score)
            continue
        yield from (BudgetIncrement(part, part.score) for part in whole.parts)
        gain = whole.gain_bytes - sum(part.gain_bytes for part in whole.parts)
        cost = whole.cost_bytes - sum(part.cost_bytes for part in whole.parts)
        last = min(part.score for part in whole.parts)
        yield BudgetIncrement(whole, min(gain / max(cost, 1), last))


def choose_rewrites(
    offers: Iterable[tuple[Key, BudgetIncrement]], max_bytes: int, overheads: Mapping[Key, int]
) -> dict[Key, tuple[Rewrite, ...]]:
    """Return for each key the rewrites that cost at most `max_bytes` together, chosen by their scores.

    `overheads` are the bytes that the first rewrite of a key costs besides. A rewrite that does not fit is passed over.
    """
    chosen: dict[Key, dict[tuple[int, ...], Rewrite]] = {}
    for key, each in sorted(offers, key=lambda offer: -offer[1].score):
        have = chosen.get(key, {})
        replaced = [part for part in each.rewrite.parts if part.fragment_ids in have]
        more = each.rewrite.cost_bytes - sum(part.cost_bytes for part in replaced)
        more += 0 if have else overheads.get(key, 0)
        if more <= max_bytes:
            max_bytes -= more
            for part in replaced:
                del have[part.fragment_ids]
            chosen.setdefault(key, have)[each.rewrite.fragment_ids] = each.rewrite
    return {key: tuple(have.values()) for key, have in chosen.items()}


def fitting(rewrites: Sequence[Rewrite], max_bytes: int) -> tuple[Rewrite, ...]:
    """Return the rewrites, or parts of them, that cost at most `max_bytes` together, chosen by their scores."""
    return choose_rewrites((("", each) for each in budget_increments(rewrites)), max_bytes, {}).get("", ())


def _parts(
    group: Sequence[FragmentSize], options: CompactionOptions, rates: Rates, cost_ratio: float
) -> Iterator[Rewrite]:
    """Yield the parts of a group that is cut as long as a side has a better score; none for one that is not cut."""
    waiting, num_cuts = [list(group)], 0
    while waiting:
        part = waiting.pop()
        rewrite = Rewrite.of(part, options.target_rows_per_fragment, rates, cost_ratio)
        largest = max(range(len(part)), key=lambda at: part[at].size_bytes)
        sides = [side for side in (part[largest + 1 :], part[:largest]) if _would_be_planned(side, options)]
        scores = (Rewrite.of(side, options.target_rows_per_fragment, rates, cost_ratio).score for side in sides)
        if num_cuts < _MOST_CUTS and max(scores, default=0.0) > rewrite.score:
            waiting += sides
            num_cuts += 1
        elif len(part) < len(group) and rewrite.gain_bytes > 0:
            yield rewrite


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

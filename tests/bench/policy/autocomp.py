"""Choose what to compact by the rule of AutoComp.

The rule is that of Gruenheid et al., "AutoComp: Automated Data Compaction for Log-Structured Tables in Data Lakes",
arXiv 2504.04186, with the file sizes that its implementation in OpenHouse leaves alone.

    file count reduction    small files - the files that they become
    compute cost            executor memory * bytes to rewrite / bytes rewritten in an hour
    normalised trait        (trait - least) / (greatest - least), over the candidates of one decision
    score                   0.7 * normalised reduction - 0.3 * normalised cost

Memory and throughput are the same for all candidates here, so the bytes to rewrite stand for the compute cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tests.bench.policy.table_state import TableState

__all__ = ["Candidate", "candidates_of", "is_triggered", "ranked", "within"]

_REDUCTION_WEIGHT = 0.7
_COST_WEIGHT = 0.3
_LEAST_REDUCTION = 0.1
"""Without a budget, a table is compacted once this share of its files would go."""
_SMALL = 0.75
"""A file of this share of the target size is not small."""


@dataclass(frozen=True)
class Candidate:
    """Small neighbouring fragments of a table, and their two traits."""

    table: str
    fragment_ids: tuple[int, ...]
    num_files_reduced: int
    size_bytes: int


def candidates_of(name: str, table: TableState, groups: Iterable[Sequence[int]], target_rows: int) -> list[Candidate]:
    """Return the runs of small fragments within the groups of a compaction plan that would become fewer."""
    found = []
    for group in groups:
        for run in _small_runs(table, group, target_rows):
            fragments = [table.fragments[place] for place in run]
            num_after = -(-sum(each.live for each in fragments) // target_rows)
            size_bytes = sum(each.size_bytes for each in fragments)
            found.append(Candidate(name, tuple(run), len(run) - num_after, size_bytes))
    return [each for each in found if each.num_files_reduced > 0]


def is_triggered(table: TableState, candidates: Iterable[Candidate]) -> bool:
    """Return whether the candidates of one table reduce its files enough; the rule if no budget bounds the work."""
    return sum(each.num_files_reduced for each in candidates) >= _LEAST_REDUCTION * max(len(table.fragments), 1)


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, the best score first."""
    reductions = _normalised([each.num_files_reduced for each in candidates])
    costs = _normalised([each.size_bytes for each in candidates])
    scores = [
        _REDUCTION_WEIGHT * reduction - _COST_WEIGHT * cost for reduction, cost in zip(reductions, costs, strict=True)
    ]
    places = sorted(range(len(candidates)), key=lambda place: -scores[place])
    return [candidates[place] for place in places]


def within(candidates: Iterable[Candidate], max_bytes: int) -> Iterator[Candidate]:
    """Yield the first candidates that the budget holds together; one that does not fit is passed over."""
    for each in candidates:
        if each.size_bytes <= max_bytes:
            max_bytes -= each.size_bytes
            yield each


def _small_runs(table: TableState, group: Sequence[int], target_rows: int) -> Iterator[list[int]]:
    for is_small, run in groupby(group, key=lambda place: table.fragments[place].live < _SMALL * target_rows):
        if is_small:
            yield list(run)


def _normalised(trait: Sequence[int]) -> list[float]:
    """Return a trait of the candidates between 0 and 1; 0 if it is the same for all."""
    if not trait:
        return []
    least, greatest = min(trait), max(trait)
    return [(value - least) / max(greatest - least, 1) for value in trait]

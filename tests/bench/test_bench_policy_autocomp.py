"""AutoComp's rule: which candidates there are, how they rank, and what a budget chooses."""

from __future__ import annotations

from lance_ops.maintenance.debt import DebtPolicy
from tests.bench.policy.autocomp import Candidate, candidates_of, is_triggered, ranked, within
from tests.bench.policy.decisions import autocomp
from tests.bench.policy.fleet import compare_fleet, fleet_of
from tests.bench.policy.simulation import STORES
from tests.bench.policy.table_state import ROW_BYTES, Stored, TableState

TARGET_ROWS = 1000
FULL = DebtPolicy().compaction.target_rows_per_fragment


def _candidate(table: str, num_files_reduced: int, size_bytes: int) -> Candidate:
    return Candidate(table, (0, 1), num_files_reduced, size_bytes)


def test_candidates_are_runs_of_small_fragments_that_become_fewer() -> None:
    sizes = (100, 200, 750, 749, 700, 300, 1000, 10)
    table = TableState(tuple(Stored(live) for live in sizes))
    found = candidates_of("t", table, [(0, 1, 2, 3, 4), (5, 6, 7)], TARGET_ROWS)
    # 749 and 700 rows would fill two fragments again, and 300 and 10 are no neighbours.
    assert found == [Candidate("t", (0, 1), 1, 300 * ROW_BYTES)]


def test_a_table_is_compacted_from_a_tenth_of_its_files_on() -> None:
    table = TableState(tuple(Stored(1) for _ in range(20)))
    assert not is_triggered(table, [_candidate("t", 1, 1)])
    assert is_triggered(table, [_candidate("t", 1, 1), _candidate("t", 1, 1)])
    assert autocomp(TableState(), DebtPolicy()).num_runs == 0


def test_seven_tenths_of_the_reduction_less_three_tenths_of_the_cost_rank_the_candidates() -> None:
    cheap, middle, dear, useless = (
        _candidate("cheap", 50, 0),  # 0.7 * 0.5
        _candidate("middle", 100, 1000),  # 0.7 - 0.3
        _candidate("dear", 60, 1000),  # 0.7 * 0.6 - 0.3
        _candidate("useless", 0, 0),
    )
    assert ranked([cheap, middle, dear, useless]) == [middle, cheap, dear, useless]
    assert ranked([]) == [] and ranked([dear]) == [dear]


def test_a_budget_takes_the_best_that_fits_and_passes_over_the_rest() -> None:
    found = [_candidate("a", 1, 600), _candidate("b", 1, 500), _candidate("c", 1, 400)]
    assert list(within(found, 1000)) == [found[0], found[2]]
    assert list(within(found, 100)) == []


def test_deleted_rows_alone_are_no_reason_to_compact() -> None:
    table = TableState((Stored(FULL // 2, FULL // 2), Stored(FULL)))
    assert autocomp(table, DebtPolicy()).rewritten_bytes == 0
    small = table.appended(10).appended(10)
    assert autocomp(small, DebtPolicy()).table.fragments == (*table.fragments, Stored(20))


def test_no_regime_of_a_fleet_exceeds_its_budget() -> None:
    num_days, max_bytes = 3, 50_000_000
    histories = fleet_of(1, num_days, 4)
    assert (
        histories == fleet_of(1, num_days, 4) != fleet_of(2, num_days, 4)
        and len({each.name for each in histories}) == 3
    )
    found = compare_fleet(1, histories, STORES[0], DebtPolicy(), max_bytes)
    assert found.never.rewritten_bytes == 0
    for outcome in (found.in_turn, found.autocomp, found.policy):
        assert 0 < outcome.rewritten_bytes <= num_days * max_bytes

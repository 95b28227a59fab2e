"""A week of each history: what the policy costs, by the library's own prices."""

from __future__ import annotations

import pytest

from lance_ops.maintenance.debt import DebtPolicy, Rates
from lance_ops.maintenance.health import HealthThresholds
from tests.bench.policy.decisions import never, nightly, owed, steps_of
from tests.bench.policy.fleet import BUDGETS, compare_fleet, fleet_of
from tests.bench.policy.histories import HISTORIES, History
from tests.bench.policy.page import page
from tests.bench.policy.simulation import STORES, Comparison, compare, run

WEEK = 7


@pytest.fixture(scope="module")
def found() -> list[Comparison]:
    return [compare(make(WEEK), store, DebtPolicy()) for store in STORES for make in HISTORIES]


def test_the_policy_is_never_the_worst_and_within_a_percent_of_the_better_fixed_regime(found: list[Comparison]) -> None:
    for each in found:
        place = f"{each.history.name} on {each.store.name}"
        assert each.policy.total <= max(each.never.total, each.nightly.total), place
        assert each.policy.total <= 1.01 * min(each.never.total, each.nightly.total), place
    assert {each.history.name for each in found if each.policy.num_runs} == {"streaming", "bursts"}


def test_the_policy_is_within_three_percent_of_the_best_in_hindsight(found: list[Comparison]) -> None:
    assert all(1 <= each.distance <= 1.03 for each in found), [each.distance for each in found]
    assert any(each.best.total < min(each.never.total, each.nightly.total, each.policy.total) for each in found)


def test_the_decisions_are_those_of_the_librarys_prices() -> None:
    stingy = DebtPolicy(
        rates=Rates(payback_reads=1e-9),
        limits=HealthThresholds(max_small_fragments=10_000, max_deleted_ratio=1.0, min_indexed_ratio=0.0),
    )
    for make in HISTORIES:
        assert run(make(2), STORES[0], stingy, owed) == run(make(2), STORES[0], stingy, never)


def test_a_state_prices_as_the_table_that_it_stands_for() -> None:
    bursts = HISTORIES[2](WEEK)
    table = bursts.start
    for day in bursts.days[:3]:
        table = day.written_to(table)
    snapshot = table.snapshot()
    assert (snapshot.size_bytes, len(snapshot.fragments)) == (table.size_bytes, len(table.fragments))
    steps = steps_of(table, DebtPolicy())
    (index,) = steps.extensions
    assert steps.compaction_is_owed and index.subject == "id_idx"
    assert sum(map(len, steps.chosen)) > 50
    work = nightly(table, DebtPolicy())
    live = sum(each.live for each in table.fragments)
    assert sum(each.live for each in work.table.fragments) == live
    assert len(work.table.fragments) < 10 and all(each.is_indexed for each in work.table.fragments)
    assert steps_of(work.table, DebtPolicy()).extensions == ()


def test_histories_are_the_same_at_each_call_and_the_page_shows_them(found: list[Comparison]) -> None:
    assert [make(WEEK) for make in HISTORIES] == [make(WEEK) for make in HISTORIES]
    assert all(isinstance(make(WEEK), History) for make in HISTORIES)
    fleets = [compare_fleet(1, fleet_of(1, 2, 3), store, DebtPolicy(), BUDGETS[0]) for store in STORES]
    shown = page(found, fleets, WEEK)
    for each in found:
        assert f"| {each.history.name} | 100 |" in shown and f"## On {each.store.name}" in shown
    assert "of 6 lines the policy costs no more than the cheaper of never and nightly,\n  and in 6 no more" in shown
    assert "of 6 lines the policy costs no more than AutoComp's rule" in shown
    assert "In each of 1 fleets, 3 tables share" in shown

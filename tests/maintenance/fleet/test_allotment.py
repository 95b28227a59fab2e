"""A budget goes to the parts of debts that gain most for their bytes, within a table and among tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import lance_ops
from lance_ops.maintenance.compaction import CompactionOptions
from lance_ops.maintenance.debt import (
    BudgetIncrement,
    DebtPolicy,
    Due,
    FragmentSize,
    Rates,
    Rewrite,
    StepKind,
    affordable,
    budget_increments,
    choose_rewrites,
    measure_debt,
    plan_payment,
    rewrites,
)
from lance_ops.maintenance.fleet import Budget, FleetStatus, allot, maintain
from tests.maintenance.conftest import rows

RATES = Rates(run_cost_bytes=1)
BEYOND_LIMITS = DebtPolicy(Rates(open_cost_bytes=100, run_cost_bytes=1))
"""Thirteen small fragments are too many, whatever their rewrite costs."""


def _rewrite(ids: tuple[int, ...], gain: float, cost: int, parts: tuple[Rewrite, ...] = ()) -> Rewrite:
    return Rewrite(ids, gain, cost, RATES.score(gain, cost), parts)


def _compaction(*rewrites: Rewrite, index_bytes: int = 0) -> Due:
    gain, cost = sum(each.gain_bytes for each in rewrites), sum(each.cost_bytes for each in rewrites)
    return Due(StepKind.COMPACT, "", "", True, round(gain), 0, cost + index_bytes, rewrites)


SMALL = _rewrite((1, 2, 3), 30, 10)
WHOLE = _rewrite((0, 1, 2, 3), 40, 110, (SMALL,))
"""A large fragment beside three small ones."""

MIDDLE = _rewrite((4, 5), 20, 20)


def _with_a_large_fragment(uri: str) -> lance_ops.LanceDataset:
    lance_ops.write_dataset(rows(0, 20_000), uri)
    for at in range(20_000, 20_012):
        lance_ops.write_dataset(rows(at, at + 1), uri, mode="append")
    return lance_ops.dataset(uri)


def test_a_whole_follows_its_parts_and_replaces_them() -> None:
    assert list(budget_increments([WHOLE, MIDDLE])) == [
        BudgetIncrement(SMALL, SMALL.score),
        BudgetIncrement(WHOLE, 10 / 100),
        BudgetIncrement(MIDDLE, MIDDLE.score),
    ]


@pytest.mark.parametrize(
    ("max_bytes", "chosen"),
    [
        (9, ()),
        (10, (SMALL,)),
        (29, (SMALL,)),
        (30, (SMALL, MIDDLE)),
        (129, (SMALL, MIDDLE)),
        (130, (MIDDLE, WHOLE)),
    ],
)
def test_a_budget_takes_the_best_parts_first_and_then_wholes(max_bytes: int, chosen: tuple[Rewrite, ...]) -> None:
    due = affordable(_compaction(WHOLE, MIDDLE), max_bytes)
    if max_bytes == 130:  # the due as it is
        assert due == _compaction(WHOLE, MIDDLE)
    else:
        assert (due.rewrites if due else ()) == chosen
    assert (
        choose_rewrites([("t", each) for each in budget_increments([WHOLE, MIDDLE])], max_bytes, {}).get("t", ())
        == chosen
    )


def test_the_indices_of_a_table_are_moved_once_and_make_its_parts_dearer() -> None:
    first, second = _rewrite((0, 1), 10, 10), _rewrite((3, 4), 9, 10)
    offers = [("t", each) for each in budget_increments([first, second])]
    assert choose_rewrites(offers, 49, {"t": 30}) == {"t": (first,)} and choose_rewrites(offers, 50, {"t": 30}) == {
        "t": (first, second)
    }
    assert choose_rewrites(offers, 39, {"t": 30}) == {}
    tables = {"indexed": [_compaction(first, index_bytes=30)], "bare": [_compaction(second)]}
    assert allot(tables, RATES, 40) == {"indexed": 0, "bare": 10}
    assert allot(tables, RATES, 50) == {"indexed": 40, "bare": 10}


def test_a_table_that_gains_little_as_a_whole_has_parts_before_other_tables() -> None:
    index = Due(StepKind.REINDEX, "id_idx", "", True, 5, 0, 10)
    tables = {"a": [_compaction(MIDDLE)], "b": [_compaction(WHOLE)], "c": [index], "d": []}
    assert allot(tables, RATES, 15) == {"a": 0, "b": 10, "c": 0, "d": 0}
    assert allot(tables, RATES, 40) == {"a": 20, "b": 10, "c": 10, "d": 0}
    assert allot(tables, RATES, 1000) == {"a": 20, "b": 110, "c": 10, "d": 0}


def test_a_measured_group_has_its_small_fragments_as_a_part(dataset_uri: str) -> None:
    dataset = _with_a_large_fragment(dataset_uri)
    found = measure_debt(dataset.snapshot, BEYOND_LIMITS)
    (due,) = found.owed
    (whole,) = due.rewrites
    (part,) = whole.parts
    assert whole.fragment_ids == tuple(range(13)) and part.fragment_ids == tuple(range(1, 13))
    assert part.score > whole.score
    assert plan_payment(found, due.cost_bytes).steps == (due,)
    (cheaper,) = plan_payment(found, due.cost_bytes - 1).steps
    assert cheaper.rewrites == (part,) and cheaper.cost_bytes == part.cost_bytes


def test_a_group_of_many_sizes_is_cut_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    priced: list[int] = []
    of = Rewrite.of

    def counted(fragments: Sequence[FragmentSize], *given: Any) -> Rewrite:
        priced.append(len(fragments))
        return of(fragments, *given)

    monkeypatch.setattr(Rewrite, "of", counted)
    group = [FragmentSize(at, at + 1, 0, 1000 * at) for at in range(1000)]
    list(rewrites._parts(group, CompactionOptions(), RATES, 1.0))
    assert 10 < len(priced) < 4 * rewrites._MOST_CUTS


def test_a_night_pays_the_small_fragments_of_all_tables_before_a_large_one(tmp_path: Path) -> None:
    least = 0
    for name in ("a", "b"):
        dataset = _with_a_large_fragment(str(tmp_path / name))
        (due,) = measure_debt(dataset.snapshot, BEYOND_LIMITS).owed
        least += due.rewrites[0].parts[0].cost_bytes
    planned = maintain(str(tmp_path), Budget(max_bytes=least), BEYOND_LIMITS, dry_run=True)
    assert planned.spent_bytes == least
    night = maintain(str(tmp_path), Budget(max_bytes=least), BEYOND_LIMITS)
    assert night.count(FleetStatus.DONE) == 2 and night.spent_bytes == least
    for name in ("a", "b"):
        left = lance_ops.dataset(str(tmp_path / name)).snapshot.fragments
        assert [each.physical_rows for each in left] == [20_000, 12]


def test_what_a_table_does_not_spend_is_left_to_the_tables_after_it(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _with_a_large_fragment(str(tmp_path / name))
    cost = measure_debt(lance_ops.dataset(str(tmp_path / "b")).snapshot).rewrite_bytes
    for file in (tmp_path / "a" / "data").iterdir():
        file.write_bytes(b"")
    night = maintain(str(tmp_path), Budget(max_bytes=cost), failure_threshold=1.0)
    assert {each.table: each.status for each in night.outcomes} == {"a": FleetStatus.FAILED, "b": FleetStatus.DONE}
    assert len(lance_ops.dataset(str(tmp_path / "b")).get_fragments()) == 1


def test_the_budget_is_shared_among_the_tables_that_a_night_may_begin(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _with_a_large_fragment(str(tmp_path / name))
    cost = measure_debt(lance_ops.dataset(str(tmp_path / "a")).snapshot).rewrite_bytes
    night = maintain(str(tmp_path), Budget(max_bytes=cost, max_tables=1))
    assert night.count(FleetStatus.DONE) == 1 and night.spent_bytes == cost

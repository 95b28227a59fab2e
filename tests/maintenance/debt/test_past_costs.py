"""What a compaction cost is measured from manifests. It corrects the prices of the next ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import lance_ops
from lance_ops.errors import StoreError
from lance_ops.maintenance.debt import DebtPolicy, PastCosts, Rates, StepCost, StepKind, measure_debt, pay_debt, payment
from lance_ops.maintenance.debt.step_costs import measure_compaction
from lance_ops.maintenance.health import HealthThresholds
from lance_ops.snapshot import Snapshot
from tests.maintenance.conftest import rows

Make = Callable[..., lance_ops.LanceDataset]

NO_LIMITS = HealthThresholds(max_small_fragments=10**6, max_deleted_ratio=1.0, min_indexed_ratio=0.0)
THRICE = PastCosts({StepKind.COMPACT: (1000.0, 3000.0)})


def data_bytes(snapshot: Snapshot) -> int:
    return sum(file.file_size_bytes for each in snapshot.fragments for file in each.files)


def test_nothing_recorded_leaves_the_prices_as_they_are(make: Make) -> None:
    snapshot = make(12).snapshot
    assert measure_debt(snapshot, past_costs=PastCosts()).dues == measure_debt(snapshot).dues
    assert [PastCosts().ratio(verb) for verb in StepKind] == [1.0, 1.0, 1.0]


def test_a_table_whose_compactions_cost_three_times_their_estimate_owes_one_later(make: Make) -> None:
    fragment_bytes = data_bytes(make(1).snapshot)
    policy = DebtPolicy(Rates(open_cost_bytes=fragment_bytes, run_cost_bytes=1, payback_reads=4), NO_LIMITS)
    owed: dict[str, int] = {}
    for num_fragments in range(2, 7):  # n fragments gain n - 1 times 4 in 4 reads, and cost n, or 3 n
        snapshot = make(1).snapshot
        for name, past in (("as estimated", PastCosts()), ("three times", THRICE)):
            if measure_debt(snapshot, policy, past_costs=past).owed:
                owed.setdefault(name, num_fragments)
    assert owed == {"as estimated": 2, "three times": 5}


def test_a_corrected_price_is_what_the_budget_compares(make: Make) -> None:
    snapshot = make(12).snapshot
    (due,) = measure_debt(snapshot).owed
    (corrected,) = measure_debt(snapshot, past_costs=THRICE).owed
    assert corrected.cost_bytes == 3 * due.cost_bytes and corrected.gain_bytes == due.gain_bytes

    waiting = pay_debt(snapshot, max_bytes=due.cost_bytes, past_costs=THRICE)
    assert waiting.status is payment.PaymentStatus.WAITING and waiting.past_costs == THRICE
    paid = pay_debt(snapshot, max_bytes=3 * due.cost_bytes, past_costs=THRICE)
    assert paid.status is payment.PaymentStatus.DONE and paid.after.health.num_fragments == 1


def test_a_cheap_verb_is_compacted_whole_although_its_price_is_below_its_bytes(make: Make) -> None:
    paid = pay_debt(make(12).snapshot, past_costs=PastCosts({StepKind.COMPACT: (1000.0, 300.0)}))
    assert paid.status is payment.PaymentStatus.DONE and paid.after.health.num_fragments == 1


def test_a_step_moved_the_mean_of_what_it_replaced_and_what_it_added(make: Make) -> None:
    snapshot = make(12).snapshot
    paid = pay_debt(snapshot)
    (step,) = paid.steps
    moved = round((data_bytes(snapshot) + data_bytes(snapshot.latest())) / 2)
    assert step.measured == StepCost(moved, paid.before.read_bytes - paid.after.read_bytes)
    assert paid.moved_bytes == moved
    assert paid.past_costs.sums == {StepKind.COMPACT: (step.cost_bytes, moved)}


def test_an_index_step_and_a_clean_up_teach_nothing(make: Make) -> None:
    dataset = make(2)
    dataset.create_scalar_index("key", "BTREE")
    dataset = lance_ops.write_dataset(rows(40, 80), dataset, mode="append")
    policy = DebtPolicy(
        cleanup=lance_ops.maintenance.cleanup.CleanupOptions(retain_versions=1), min_removable_versions=1
    )
    paid = pay_debt(dataset.snapshot, policy)
    assert {step.key: step.measured for step in paid.steps} == {"reindex key_idx": None, "cleanup": None}
    assert paid.past_costs == PastCosts() and paid.moved_bytes == 0


def test_a_step_is_compared_with_its_estimate_also_when_its_price_was_corrected(make: Make) -> None:
    paid = pay_debt(make(12).snapshot, past_costs=THRICE)
    (step,) = paid.steps
    assert step.measured is not None
    moved = step.measured.moved_bytes
    assert paid.past_costs == THRICE.with_step(StepKind.COMPACT, step.cost_bytes / 3, moved)


def test_a_version_before_that_cannot_be_read_leaves_the_step_unmeasured(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object) -> Snapshot:
        raise StoreError("the store does not answer")

    planned = make(12).snapshot
    lance_ops.write_dataset(rows(240, 280), planned.uri, mode="append")
    dataset = lance_ops.dataset(planned.uri)
    dataset.optimize.compact_files()
    committed = dataset.snapshot.latest()
    monkeypatch.setattr(Snapshot, "at", unreachable)
    assert measure_compaction(planned, committed, Rates()) is None


def test_rows_of_another_writer_are_no_cost_of_a_step(make: Make) -> None:
    planned = make(12).snapshot
    lance_ops.write_dataset(rows(240, 10_000), planned.uri, mode="append")
    dataset = lance_ops.dataset(planned.uri)
    dataset.optimize.compact_files()
    before, committed = dataset.snapshot.at(planned.version + 1), dataset.snapshot.latest()
    found = measure_compaction(planned, committed, Rates())
    assert found is not None
    assert found.moved_bytes == round((data_bytes(before) + data_bytes(committed)) / 2)
    assert measure_compaction(planned, planned, Rates()) is None


def test_a_step_that_committed_nothing_teaches_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payment, "_compact", lambda snapshot, *_: (snapshot, "nothing"))
    paid = pay_debt(make(12).snapshot, past_costs=THRICE)
    assert paid.steps[0].measured is None and paid.past_costs == THRICE


def test_earlier_steps_count_half_and_the_ratio_is_bounded() -> None:
    past = PastCosts().with_step(StepKind.COMPACT, 100, 300)
    assert past.ratio(StepKind.COMPACT) == 3 and past.ratio(StepKind.REINDEX) == 1
    later = past.with_step(StepKind.COMPACT, 100, 100)
    assert later.sums == {StepKind.COMPACT: (150.0, 250.0)}
    assert PastCosts().with_step(StepKind.COMPACT, 100, 10**6).ratio(StepKind.COMPACT) == 4
    assert PastCosts().with_step(StepKind.COMPACT, 10**6, 100).ratio(StepKind.COMPACT) == 0.25
    assert PastCosts().with_step(StepKind.REINDEX, 0, 100).with_step(StepKind.REINDEX, 100, 0) == PastCosts()


@pytest.mark.parametrize(
    "facts",
    [
        None,
        [1, 2],
        {"compact": 3},
        {"compact": [1]},
        {"compact": ["1", "3"]},
        {"compact": [0, 3]},
        {"compact": [1, -3]},
        {"compact": [1, math.nan]},
        {"compact": [1, math.inf]},
        {"compact": [True, True]},
        {"vacuum": [1, 3]},
    ],
)
def test_a_wrong_record_is_ignored(facts: object) -> None:
    assert PastCosts.from_facts(facts) == PastCosts()


def test_a_record_survives_json_beside_a_wrong_one() -> None:
    facts = THRICE.to_facts()
    assert facts == {"compact": [1000, 3000]}
    assert PastCosts.from_facts({**facts, "reindex": "?"}) == THRICE

"""What a table owes, what it costs, and that paying it ends."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import lance_ops
from lance_ops.errors import InvalidInput, RetryableConflict, StoreError
from lance_ops.maintenance.cleanup import CleanupOptions, CleanupStats
from lance_ops.maintenance.compaction import CompactionOptions, RewriteOutcome, commit_rewrites, compacting
from lance_ops.maintenance.debt import (
    DebtPolicy,
    PaymentStatus,
    Rates,
    WantedIndex,
    affordable,
    measure_debt,
    pay_debt,
    payment,
    plan_payment,
)
from lance_ops.maintenance.health import HealthThresholds
from lance_ops.refs import pinned, pinned_with_later
from lance_ops.snapshot import Snapshot
from lance_ops.table import FragmentList, encode_manifest
from tests.maintenance.conftest import forbid_writes, rows
from tests.pickling_runner import PicklingRunner

Make = Callable[..., lance_ops.LanceDataset]

NO_LIMITS = HealthThresholds(max_small_fragments=10**6, max_deleted_ratio=1.0, min_indexed_ratio=0.0)


def test_a_new_table_owes_nothing(make: Make) -> None:
    found = measure_debt(make(1).snapshot)
    assert (found.dues, found.read_amplification, found.rewrite_bytes, found.score) == ((), 1.0, 0, 0.0)
    assert pay_debt(make(1).snapshot).status is PaymentStatus.NOTHING_OWED


def test_debt_is_measured_from_metadata_alone(make: Make) -> None:
    dataset = make(30)
    dataset.create_scalar_index("key", "BTREE")
    dataset.delete("id < 30")
    before = measure_debt(dataset.snapshot)
    for folder in ("data", "_indices", "_deletions", "_transactions"):
        shutil.rmtree(Path(dataset.uri, folder))
    again = measure_debt(lance_ops.dataset(dataset.uri).snapshot)
    assert again.dues == before.dues and again.read_bytes == before.read_bytes
    assert [due.key for due in again.owed] == ["compact"]


def test_small_fragments_are_priced_by_what_a_read_gains_and_a_rewrite_moves(make: Make) -> None:
    dataset = make(30)
    rates = Rates()
    found = measure_debt(dataset.snapshot)
    size_bytes = sum(file.file_size_bytes for each in dataset.snapshot.fragments for file in each.files)
    (due,) = found.owed
    assert (due.gain_bytes, due.cost_bytes) == (29 * rates.open_cost_bytes, size_bytes)
    assert found.read_bytes == size_bytes + 30 * rates.open_cost_bytes
    assert found.score == pytest.approx(due.gain_bytes / (size_bytes + rates.run_cost_bytes))


def test_a_step_is_owed_from_where_its_gains_pay_its_run_back(make: Make) -> None:
    owed = {}
    for num_fragments in (1, 6, 7, 8):  # 6.4 opened fragments of 4 MiB, read ten times, are a run of 256 MiB
        dataset = make(num_fragments)
        owed[len(dataset.get_fragments())] = bool(measure_debt(dataset.snapshot).owed)
        shutil.rmtree(dataset.uri)
    assert owed == {1: False, 6: False, 7: False, 8: True}


def test_a_large_fragment_among_small_ones_is_not_rewritten_for_them(dataset_uri: str) -> None:
    lance_ops.write_dataset(rows(0, 20_000), dataset_uri)
    for at in range(6):
        lance_ops.write_dataset(rows(20_000 + at, 20_001 + at), dataset_uri, mode="append")
    dataset = lance_ops.dataset(dataset_uri)
    policy = DebtPolicy(Rates(open_cost_bytes=100, run_cost_bytes=1, payback_reads=100), NO_LIMITS)
    (due,) = measure_debt(dataset.snapshot, policy).owed
    assert [each.fragment_ids for each in due.rewrites] == [(1, 2, 3, 4, 5, 6)]

    paid = pay_debt(dataset.snapshot, policy)

    assert paid.status is PaymentStatus.DONE and not paid.after.owed
    now = lance_ops.dataset(dataset_uri)
    assert len(now.get_fragments()) == 2 and now.get_fragment(0) is not None
    assert now.to_table() == dataset.to_table()
    # When there are enough small ones, the large one is worth its bytes.
    generous = replace(policy, rates=replace(policy.rates, payback_reads=10**6))
    assert [each.fragment_ids for each in measure_debt(dataset.snapshot, generous).owed[0].rewrites] == [
        (0, 1, 2, 3, 4, 5, 6)
    ]


def test_deleted_rows_are_owed_beyond_the_limit_or_when_dropping_them_pays(make: Make) -> None:
    dataset = make(1, 1000)
    dataset.delete("id < 300")
    (due,) = measure_debt(dataset.snapshot, DebtPolicy(limits=NO_LIMITS)).dues
    assert not due.is_owed and due.gain_bytes == pytest.approx(0.3 * due.cost_bytes, rel=0.01)
    assert measure_debt(dataset.snapshot, DebtPolicy(Rates(run_cost_bytes=1, payback_reads=4), NO_LIMITS)).owed

    paid = pay_debt(dataset.snapshot)

    assert paid.before.health.deleted_ratio == pytest.approx(0.3)
    assert paid.after.health.deleted_ratio == 0 and not paid.after.dues


def test_indices_are_extended_and_missing_ones_are_built(make: Make) -> None:
    dataset = make(2)
    dataset.create_scalar_index("key", "BTREE")
    dataset = lance_ops.write_dataset(rows(40, 80), dataset, mode="append")
    policy = DebtPolicy(indices=(WantedIndex("id_idx", "id"), WantedIndex("key_idx", "key")))
    found = measure_debt(dataset.snapshot, policy)
    assert {due.key: due.what for due in found.owed} == {
        "reindex id_idx": "the index is missing",
        "reindex key_idx": "50.0% of the rows are not covered",
    }

    paid = pay_debt(dataset.snapshot, policy)

    assert [(step.key, step.what) for step in paid.steps] == [
        ("reindex id_idx", "built"),
        ("reindex key_idx", "extended"),
    ]
    assert {index.name: index.indexed_ratio for index in paid.after.health.indices} == {"id_idx": 1, "key_idx": 1}
    assert not paid.after.owed and not paid.fruitless


def test_old_versions_are_owed_but_for_tagged_ones(make: Make) -> None:
    dataset = make(6)
    dataset.tags.create("kept", 2)
    policy = DebtPolicy(cleanup=CleanupOptions(retain_versions=1), min_removable_versions=4)
    assert measure_debt(dataset.snapshot, policy).inventory.num_removable_versions == 4
    paid = pay_debt(dataset.snapshot, policy)
    assert [step.key for step in paid.steps] == ["cleanup"]
    assert [each["version"] for each in lance_ops.dataset(dataset.uri).versions()] == [2, 6]
    assert paid.after.due("cleanup") is None


def test_versions_that_clean_up_keeps_make_none_owed(make: Make) -> None:
    snapshot, limits = make(6).snapshot, HealthThresholds(max_versions=3)

    def owes(num_kept: int) -> bool:
        cleanup = CleanupOptions(retain_versions=num_kept)
        due = measure_debt(snapshot, DebtPolicy(limits=limits, cleanup=cleanup, min_removable_versions=100)).due(
            "cleanup"
        )
        return due is not None and due.is_owed

    assert (owes(5), owes(3), owes(2)) == (False, False, True)


@pytest.mark.parametrize("keep", [pinned, pinned_with_later])
def test_no_clean_up_is_owed_of_versions_that_a_pin_keeps(make: Make, keep: Callable[[Snapshot], Any]) -> None:
    dataset = make(6)
    policy = DebtPolicy(cleanup=CleanupOptions(retain_versions=1), min_removable_versions=4)
    with keep(lance_ops.dataset(dataset.uri, version=2).snapshot):
        num_kept = 1 if keep is pinned else 4
        assert measure_debt(dataset.snapshot, policy).inventory.num_removable_versions == 5 - num_kept
    assert measure_debt(dataset.snapshot, policy).inventory.num_removable_versions == 5


@pytest.mark.parametrize("max_source_bytes", [None, 1 << 30])
def test_fragments_whose_sizes_no_manifest_records_are_compacted(make: Make, max_source_bytes: int | None) -> None:
    dataset = make(30)
    snapshot = dataset.snapshot
    fragments = [
        replace(each, files=tuple(replace(file, file_size_bytes=0) for file in each.files))
        for each in snapshot.fragments
    ]
    manifest = replace(snapshot.manifest, fragments=FragmentList.of(fragments))
    Path(dataset.uri, snapshot.committer.location(30)).write_bytes(encode_manifest(manifest, b""))
    policy = DebtPolicy(compaction=CompactionOptions(max_source_bytes=max_source_bytes))
    paid = pay_debt(lance_ops.dataset(dataset.uri).snapshot, policy)
    assert (paid.status, paid.reason) == (PaymentStatus.DONE, None)
    assert len(lance_ops.dataset(dataset.uri).get_fragments()) == 1


def test_a_clean_up_of_many_versions_gives_its_work_to_the_runner(make: Make) -> None:
    dataset = make(70, 1)
    policy = DebtPolicy(Rates(run_cost_bytes=10**12), NO_LIMITS, cleanup=CleanupOptions(retain_versions=1))
    elsewhere = PicklingRunner()
    paid = pay_debt(dataset.snapshot, policy, runner=elsewhere)
    assert [(step.key, step.orphan_bytes) for step in paid.steps] == [("cleanup", 0)]
    assert [verb for verb, _ in elsewhere.jobs] == ["read versions to clean up"]
    assert len(lance_ops.dataset(dataset.uri).versions()) == 1


def test_a_version_is_old_by_the_listing_s_clock(make: Make) -> None:
    dataset = make(3)
    policy = DebtPolicy(min_removable_versions=2)
    assert measure_debt(dataset.snapshot, policy).due("cleanup") is None
    later = measure_debt(dataset.snapshot, policy, now=datetime.now(UTC) + timedelta(days=15))
    assert [(due.key, due.is_owed) for due in later.owed] == [("cleanup", True)]


def test_files_that_no_version_names_are_counted_on_request(make: Make) -> None:
    dataset = make(1)
    orphan = Path(dataset.uri, "data", "orphan.lance")
    orphan.write_bytes(b"0" * 1000)
    assert measure_debt(dataset.snapshot).inventory.orphan_bytes is None
    young = measure_debt(dataset.snapshot, orphans=True).inventory.orphan_bytes
    assert young == 0  # its writer may be about to commit
    old = (datetime.now(UTC) - timedelta(days=30)).timestamp()
    os.utime(orphan, (old, old))
    found = measure_debt(dataset.snapshot, DebtPolicy(Rates(run_cost_bytes=1000)), orphans=True)
    assert found.inventory.orphan_bytes == 1000 and [due.key for due in found.owed] == ["cleanup"]


def test_a_budget_is_never_exceeded_and_pays_the_best_part_first(dataset_uri: str) -> None:
    for at in range(24):
        lance_ops.write_dataset(rows(at * 10, at * 10 + 10), dataset_uri, mode="append")
        if at == 15:  # what an index covers is not mixed with what it does not
            lance_ops.dataset(dataset_uri).create_scalar_index("key", "BTREE")
    snapshot = lance_ops.dataset(dataset_uri).snapshot
    policy = DebtPolicy(Rates(run_cost_bytes=1), replace(NO_LIMITS, min_indexed_ratio=0.0))
    (whole, _) = measure_debt(snapshot, policy).owed
    assert [len(each.fragment_ids) for each in whole.rewrites] == [16, 8]
    budget = whole.cost_bytes - 1
    part = affordable(whole, budget)
    assert part is not None and part.cost_bytes <= budget and [len(each.fragment_ids) for each in part.rewrites] == [16]
    assert affordable(whole, 10) is None

    planned = plan_payment(measure_debt(snapshot, policy), budget)
    assert [step.key for step in planned.steps][:1] == ["compact"] and planned.steps[0] == part
    nothing = pay_debt(snapshot, policy, max_bytes=10)
    assert nothing.status is PaymentStatus.WAITING and nothing.waiting == ("compact", "reindex key_idx")
    paid = pay_debt(snapshot, policy, max_bytes=budget)
    assert 0 < paid.spent_bytes == planned.cost_bytes <= budget
    assert [step.key for step in paid.steps] == [step.key for step in planned.steps]
    assert paid.waiting == planned.waiting
    assert len(lance_ops.dataset(dataset_uri).get_fragments()) == 9


def test_a_compaction_that_is_planned_again_stays_within_its_price(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(8)
    policy = DebtPolicy(Rates(run_cost_bytes=1), NO_LIMITS)
    chosen = {fragment.fragment_id for fragment in dataset.get_fragments()}
    commit, tried = commit_rewrites, []

    def conflict_once(snapshot: Snapshot, rewrites: Sequence[RewriteOutcome], **options: Any) -> Any:
        tried.append({old.id for each in rewrites for old in each.old_fragments})
        if len(tried) == 1:
            lance_ops.write_dataset(rows(0, 1000), dataset.uri, mode="append")
            raise RetryableConflict("another writer was first")
        return commit(snapshot, rewrites, **options)

    monkeypatch.setattr(compacting, "commit_rewrites", conflict_once)
    paid = pay_debt(dataset.snapshot, policy)
    assert [step.key for step in paid.steps] == ["compact"]
    assert tried == [chosen, chosen]
    assert len(lance_ops.dataset(dataset.uri).get_fragments()) == 2


def test_a_step_that_gained_nothing_waits_for_the_table_to_change(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(6)
    policy = DebtPolicy(cleanup=CleanupOptions(retain_versions=1), min_removable_versions=4)
    with monkeypatch.context() as patched:
        patched.setattr(payment, "cleanup_old_versions", lambda *_: CleanupStats())
        first = pay_debt(dataset.snapshot, policy)
        assert first.status is PaymentStatus.DONE and first.fruitless == ("v6 cleanup of 5",)
        second = pay_debt(dataset.snapshot, policy, fruitless=first.fruitless)
        assert second.status is PaymentStatus.FRUITLESS and second.fruitless == first.fruitless
    lance_ops.write_dataset(rows(0, 1), dataset, mode="append")
    third = pay_debt(dataset.snapshot, policy, fruitless=second.fruitless)
    assert [step.key for step in third.steps] == ["cleanup"] and not third.fruitless


@pytest.mark.parametrize(
    ("error", "fruitless"), [(StoreError("is away"), ()), (InvalidInput("is odd"), ("v30 compact",))]
)
def test_a_failed_step_ends_with_its_reason(
    make: Make, monkeypatch: pytest.MonkeyPatch, error: Exception, fruitless: tuple[str, ...]
) -> None:
    def fail(*_: object) -> None:
        raise error

    dataset = make(30)
    monkeypatch.setattr(payment, "compact_files", fail)
    paid = pay_debt(dataset.snapshot)
    assert paid.status is PaymentStatus.FAILED and paid.reason == f"compact: {error}"
    assert paid.fruitless == fruitless and not paid.steps
    assert pay_debt(dataset.snapshot, fruitless=("v30 compact",)).status is PaymentStatus.FRUITLESS


def test_what_cannot_be_done_is_shown_as_blocked(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(30)
    dataset.create_scalar_index("key", "BTREE")
    dataset = lance_ops.write_dataset(rows(0, 900), dataset, mode="append")
    monkeypatch.setattr("lance_ops.indices.registry.ALL_INDEX_TYPES", ())
    found = measure_debt(dataset.snapshot)
    assert not found.owed
    assert {due.key: due.blocked is not None for due in found.dues} == {"compact": True, "reindex key_idx": True}


def test_a_policy_without_sense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="payback_reads"):
        Rates(payback_reads=0)
    with pytest.raises(InvalidInput, match="open_cost_bytes"):
        Rates(open_cost_bytes=0)
    with pytest.raises(InvalidInput, match="cluster_by"):
        DebtPolicy(compaction=CompactionOptions(cluster_by=("x",)))
    with pytest.raises(InvalidInput, match="min_removable_versions"):
        DebtPolicy(min_removable_versions=0)


def test_growth_is_by_the_day(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(2)
    assert measure_debt(dataset.snapshot).inventory.growth is None  # seconds say nothing about a day
    monkeypatch.setattr("lance_ops.maintenance.debt.inventory._SHORTEST", timedelta(0))
    growth = measure_debt(dataset.snapshot).inventory.growth
    assert growth is not None and growth.rows_per_day > 20 and growth.bytes_per_day > 0


def test_no_step_is_owed_by_a_table_that_this_release_cannot_write(make: Make) -> None:
    dataset = make(4)
    forbid_writes(dataset.snapshot)
    snapshot = lance_ops.dataset(dataset.uri).snapshot
    policy = DebtPolicy(
        limits=HealthThresholds(max_small_fragments=1),
        cleanup=CleanupOptions(timedelta(0)),
        indices=(WantedIndex("key_idx", "key"),),
        min_removable_versions=1,
    )
    found = measure_debt(snapshot, policy, orphans=True)
    assert [(due.key, due.owed_text) for due in found.dues] == [
        ("compact", "blocked"),
        ("reindex key_idx", "blocked"),
        ("cleanup", "blocked"),
    ]
    assert all("at version 4: writing a table with feature flags bit 40" in due.why for due in found.dues)
    assert found.inventory.orphan_bytes is None
    assert pay_debt(snapshot, policy, orphans=True).status is PaymentStatus.NOTHING_OWED

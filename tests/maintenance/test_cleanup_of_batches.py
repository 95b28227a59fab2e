"""Clean-up keeps what is known of ingested batches: none is forgotten or ingested twice."""

from __future__ import annotations

from datetime import timedelta

import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.maintenance.batch_ledger import batch_history, batch_properties, ingested_batches
from lance_ops.maintenance.cleanup.cleanup import execute, plan_cleanup
from lance_ops.maintenance.cleanup.cleanup_options import CleanupOptions
from lance_ops.snapshot.snapshot import Snapshot
from tests.maintenance.conftest import rows

NOW = timedelta(0)


def ingest(uri: str, key: str, mode: str = "append") -> Snapshot:
    """Commit one row as the batch of this key."""
    made = lance_ops.write_dataset(rows(0, 1), uri, mode=mode, transaction_properties=batch_properties({key: key}))
    return made.snapshot


def test_batches_of_an_older_version_are_found_after_a_clean_up(dataset_uri: str) -> None:
    """Two versions are retained; a reader of the older one must still find the first batch."""
    for key in ("a", "b", "c"):
        snapshot = ingest(dataset_uri, key)
    older, before = snapshot.at(2), ingested_batches(snapshot)
    assert [batch.committed_at for batch in before.values()] == [snapshot.at(n).manifest.timestamp for n in (3, 2, 1)]
    lance_ops.dataset(dataset_uri).cleanup_old_versions(retain_versions=2)
    assert set(ingested_batches(older)) == {"a", "b"}
    assert ingested_batches(snapshot) == before


def test_a_checkpoint_of_an_earlier_release_does_not_tell_when_batches_were_committed(dataset_uri: str) -> None:
    snapshot = ingest(dataset_uri, "a")
    lance_ops.dataset(dataset_uri).cleanup_old_versions(retain_versions=1)
    snapshot.store.put(
        "_lance_ops/batches/00000000000000000001.json", b'[{"version": 1, "batches": {"a": "t"}, "back_to": null}]'
    )
    assert ingested_batches(snapshot)["a"].committed_at is None


def test_a_restore_to_before_a_checkpoint_brings_its_batches_back(dataset_uri: str) -> None:
    ingest(dataset_uri, "a")
    dataset = lance_ops.dataset(dataset_uri)
    dataset.tags.create("first")
    ingest(dataset_uri, "b", mode="overwrite")
    ingest(dataset_uri, "c")
    dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    lance_ops.dataset(dataset_uri, version="first").restore()
    snapshot = lance_ops.dataset(dataset_uri).snapshot
    history = batch_history(snapshot)
    assert (set(history.held), set(history.taken_out)) == ({"a"}, {"b", "c"})
    restored_at = snapshot.manifest.timestamp
    assert restored_at is not None and history.set_back_at == restored_at
    snapshot = ingest(dataset_uri, "b")
    history = batch_history(snapshot)
    assert (set(history.held), set(history.taken_out)) == ({"a", "b"}, {"c"})
    assert history.set_back_at == restored_at


def test_batches_are_found_during_a_concurrent_clean_up(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("a", "b", "c"):
        snapshot = ingest(dataset_uri, key)
    versions = PutIfAbsentCommitter.versions
    ran: list[bool] = []

    def clean_up_first(self: PutIfAbsentCommitter) -> list[int]:
        if not ran:
            ran.append(True)
            lance_ops.dataset(dataset_uri).cleanup_old_versions(NOW)
        return versions(self)

    monkeypatch.setattr(PutIfAbsentCommitter, "versions", clean_up_first)
    assert set(ingested_batches(snapshot)) == {"a", "b", "c"}
    assert ran


@pytest.mark.parametrize("when", ["before the history is read", "after it"])
def test_a_plan_that_missed_removed_versions_keeps_their_batches(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    for key in ("a", "b", "c"):
        snapshot = ingest(dataset_uri, key)
    if when == "after it":
        plan = plan_cleanup(snapshot, CleanupOptions(NOW))
    lance_ops.dataset(dataset_uri).cleanup_old_versions(NOW)
    newest = ingest(dataset_uri, "d")
    if when == "before the history is read":
        plan = plan_cleanup(newest, CleanupOptions(NOW))
        assert [event.version for event in plan.batch_events] == [newest.version, newest.version - 1]
    execute(newest, plan)
    lance_ops.dataset(dataset_uri).cleanup_old_versions(NOW)
    assert set(ingested_batches(newest)) == {"a", "b", "c", "d"}

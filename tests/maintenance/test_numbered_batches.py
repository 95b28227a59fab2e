"""A search for the last batch of a name reads no version before that batch."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.maintenance import batch_ledger, batch_properties, last_numbered_batch
from lance_ops.maintenance.batch_ledger import BatchEvent
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import CommittedVersion


def ingest(uri: str, *keys: str) -> Snapshot:
    """Commit one row as the batches of these keys; an ordinary append if there are none."""
    properties = batch_properties({key: key for key in keys})
    return lance_ops.write_dataset(pa.table({"x": [1]}), uri, mode="append", transaction_properties=properties).snapshot


def last(snapshot: Snapshot, name: str) -> tuple[int, int] | None:
    found = last_numbered_batch(snapshot, name)
    return None if found is None else (found.number, found.version)


@pytest.mark.parametrize("cleaned", [False, True])
def test_the_last_number_of_each_name_is_found(dataset_uri: str, cleaned: bool) -> None:
    for keys in (("a/0",), ("a/b/7", "b/3"), ("a/1", "a/x", "a/-4", "a/٣", f"a/{'9' * 5000}"), ("a",), ()):
        snapshot = ingest(dataset_uri, *keys)
    if cleaned:
        lance_ops.dataset(dataset_uri).cleanup_old_versions(timedelta(0))
    assert last(snapshot, "a") == (1, 3)
    assert last(snapshot, "a/b") == (7, 2)
    assert last(snapshot, "b") == (3, 2)
    assert last(snapshot, "c") is None


def test_the_number_is_that_of_the_snapshot_s_version(dataset_uri: str) -> None:
    for number in range(4):
        snapshot = ingest(dataset_uri, f"a/{number}")
    assert last(snapshot.at(2), "a") == (1, 2)
    lance_ops.dataset(dataset_uri, 3).restore()
    assert last(snapshot.latest(), "a") == (2, 3)
    lance_ops.write_dataset(pa.table({"x": [1]}), dataset_uri, mode="overwrite")
    assert last(snapshot.latest(), "a") is None


def test_older_versions_are_not_read(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        snapshot = ingest(dataset_uri, f"a/{number}")
    read: list[int] = []
    event_of = batch_ledger.recorded_event

    def noted(committed: CommittedVersion) -> BatchEvent | None:
        read.append(committed.version)
        return event_of(committed)

    monkeypatch.setattr(batch_ledger, "recorded_event", noted)
    assert last(snapshot, "a") == (39, 40)
    assert read == [40]


def test_a_clean_up_during_the_search_hides_no_batch(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for keys in (("a/0",), (), ()):
        snapshot = ingest(dataset_uri, *keys)
    versions = PutIfAbsentCommitter.versions
    ran: list[bool] = []

    def clean_up_first(self: PutIfAbsentCommitter) -> list[int]:
        if not ran:
            ran.append(True)
            lance_ops.dataset(dataset_uri).cleanup_old_versions(timedelta(0))
        return versions(self)

    monkeypatch.setattr(PutIfAbsentCommitter, "versions", clean_up_first)
    assert last(snapshot, "a") == (0, 1)
    assert ran

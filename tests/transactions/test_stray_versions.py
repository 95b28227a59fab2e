"""A commit of unknown outcome whose request arrives after other writers have committed."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers import PutIfAbsentCommitter, opening
from lance_ops.committers.create_retries import CreateRetries
from lance_ops.core.errors import CommitStateUnknown, RetryableConflict
from lance_ops.maintenance.batch_ledger import batch_properties, ingested_batches
from lance_ops.store import Fault, FaultyStore, LocalStore, MemoryStore, When
from lance_ops.transactions import (
    TOKEN,
    ReserveFragments,
    Transaction,
    find_token,
    is_in_history,
    read_manifest,
    read_version,
)
from lance_ops.transactions.committed import descends_from
from lance_ops.transactions.committed.tokens import TOKENS_DIR
from lance_ops.transactions.transaction import StoredTransaction
from lance_ops.writing.commit import commit_operation
from tests.transactions.pylance_history import write_history

NOW = timedelta(0)
KEPT = {"the next version": (4,), "both neighbours": (2, 4), "nothing between": ()}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids})


def append(uri: str, *ids: int) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(rows(*ids), uri, mode="append")


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> tuple[FaultyStore, CommitStateUnknown]:
    """An append as version 3, with the token `t`, of unknown outcome; its request has not arrived yet."""
    store = FaultyStore(MemoryStore(f"stray-{uuid.uuid4().hex}"))
    append(store.uri, 1)
    append(store.uri, 2)
    faulty = FaultyStore(MemoryStore(store.uri.removeprefix("memory://")), *_late_and_unanswered())
    with monkeypatch.context() as patch:
        patch.setattr(opening, "open_store", lambda uri, options: faulty)
        patch.setattr(
            opening, "PutIfAbsentCommitter", lambda store, **_: PutIfAbsentCommitter(store, retries=CreateRetries(1, 0))
        )
        with pytest.raises(CommitStateUnknown) as caught:
            lance_ops.write_dataset(
                rows(99), store.uri, mode="append", transaction_properties={TOKEN: "t", **batch_properties({"b": "x"})}
            )
    assert caught.value.version == 3
    return faulty, caught.value


def _late_and_unanswered() -> tuple[Fault, ...]:
    """The create of a manifest arrives late, and reads of version 3 get no answer."""
    return (
        Fault("put_if_absent", "_versions/*", call=None, when=When.LATE),
        Fault("get", "_versions/18446744073709551612.manifest", call=None),
    )


def overtake(store: FaultyStore, *kept: int) -> lance_ops.LanceDataset:
    """Make versions 3 to 5, clean up all older ones except `kept`, and then deliver the late request."""
    for number in (3, 4, 5):
        dataset = append(store.uri, number)
    for version in kept:
        dataset.tags.create(f"kept-{version}", version)
    dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    store.deliver_late()
    return lance_ops.dataset(store.uri)


def token_in(dataset: lance_ops.LanceDataset) -> int | None:
    return find_token(dataset.snapshot.store, dataset.snapshot.committer, "t")


def test_a_late_version_that_is_the_newest_counts(lost: tuple[FaultyStore, CommitStateUnknown]) -> None:
    store, unknown = lost
    assert lance_ops.dataset(store.uri).resolve(unknown.uuid) is None

    store.deliver_late()

    dataset = lance_ops.dataset(store.uri)
    assert dataset.resolve(unknown.uuid) == token_in(dataset) == 3
    assert append(store.uri, 3).resolve(unknown.uuid) == 3
    assert lance_ops.dataset(store.uri).to_table().column("id").to_pylist() == [1, 2, 99, 3]


def test_a_late_request_does_not_replace_another_writers_version(lost: tuple[FaultyStore, CommitStateUnknown]) -> None:
    store, unknown = lost
    append(store.uri, 3)
    store.deliver_late()

    dataset = lance_ops.dataset(store.uri)
    assert dataset.resolve(unknown.uuid) is None and token_in(dataset) is None
    assert dataset.to_table().column("id").to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("kept", ["the next version", "nothing between"])
def test_a_stray_version_does_not_count(lost: tuple[FaultyStore, CommitStateUnknown], kept: str) -> None:
    store, unknown = lost
    dataset = overtake(store, *KEPT[kept])
    assert dataset.version == 5 and 3 in [version["version"] for version in dataset.versions()]
    if kept == "the next version":
        assert dataset.resolve(unknown.uuid) is None and token_in(dataset) is None
    else:
        with pytest.raises(CommitStateUnknown, match="removed the evidence"):
            dataset.resolve(unknown.uuid)
        with pytest.raises(CommitStateUnknown, match="removed the evidence"):
            token_in(dataset)
    assert dataset.to_table().column("id").to_pylist() == [1, 2, 3, 4, 5]
    again = lance_ops.write_dataset(rows(99), store.uri, mode="append", transaction_properties={TOKEN: "t"})
    assert again.to_table().column("id").to_pylist() == [1, 2, 3, 4, 5, 99]

    again.cleanup_old_versions(NOW, error_if_tagged_old_versions=False, delete_unverified=True)

    assert 3 not in [version["version"] for version in again.versions()]
    again.validate()
    assert len(list(again.snapshot.store.list("data"))) == len(again.get_fragments())
    assert again.resolve(unknown.uuid) is None


def batches_in(dataset: lance_ops.LanceDataset) -> set[str]:
    return set(ingested_batches(dataset.snapshot.latest()))


@pytest.mark.parametrize("kept", ["the next version", "both neighbours", "nothing between"])
def test_clean_up_saves_no_token_or_batch_of_a_stray_version(
    lost: tuple[FaultyStore, CommitStateUnknown], kept: str
) -> None:
    dataset = overtake(lost[0], *KEPT[kept])
    assert 3 in [version["version"] for version in dataset.versions()]
    assert batches_in(dataset) == set()

    dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)

    assert 3 not in [version["version"] for version in dataset.versions()]
    assert token_in(dataset) is None
    assert batches_in(dataset) == set()
    assert list(dataset.snapshot.store.list(TOKENS_DIR)) == []


def test_a_commit_with_the_token_of_a_stray_version_is_no_replay(
    lost: tuple[FaultyStore, CommitStateUnknown],
) -> None:
    store, _ = lost
    stale = lance_ops.dataset(store.uri, version=2)
    overtake(store, 2)

    with pytest.raises(RetryableConflict):
        commit_operation(stale.snapshot, ReserveFragments(1), properties={TOKEN: "t"})
    assert lance_ops.dataset(store.uri).to_table().column("id").to_pylist() == [1, 2, 3, 4, 5]


def test_the_token_of_a_tagged_version_is_saved_before_its_neighbours_are_removed() -> None:
    uri = f"memory://held-{uuid.uuid4().hex}"
    append(uri, 1)
    properties = {TOKEN: "t", **batch_properties({"b": "x"})}
    dataset = lance_ops.write_dataset(rows(2), uri, mode="append", transaction_properties=properties)
    dataset.tags.create("kept", 2)
    append(uri, 3).optimize.compact_files()
    dataset = append(uri, 4)
    dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    dataset.tags.delete("kept")
    dataset.cleanup_old_versions(NOW)

    assert [version["version"] for version in dataset.versions()] == [dataset.version]
    assert token_in(dataset) == 2 and batches_in(dataset) == {"b"}


@pytest.mark.interop
@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_versions_of_the_reference_descend_from_each_other(stable_row_ids: bool, tmp_path: Path) -> None:
    """None of them may seem stray, because its work would then be done a second time."""
    lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    store = LocalStore(str(tmp_path / "table"))
    write_history(lance, str(tmp_path / "table"), stable_row_ids=stable_row_ids)
    committer = PutIfAbsentCommitter(store)
    read = partial(read_manifest, store, committer)
    versions = [read_version(store, committer, version) for version in committer.versions()]
    assert len(versions) > 20
    for before, made, after in zip(versions, versions[1:], versions[2:], strict=False):
        assert is_in_history(made, after, read), (made.transaction, after.transaction)
        other = StoredTransaction(Transaction(1, ReserveFragments(1)).encode(), "a transaction without fragments")
        assert is_in_history(replace(made, stored_transaction=other), after, read)
        assert descends_from(after, made.manifest, before.manifest, read)

"""A commit whose outcome was unknown, and whose request arrives when others have gone on."""

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
from lance_ops.writing.commit import commit_operation
from tests.transactions.pylance_life import live

NOW = timedelta(0)
KEPT = {"the next version": (4,), "both neighbours": (2, 4), "nothing between": ()}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids})


def append(uri: str, *ids: int) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(rows(*ids), uri, mode="append")


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> tuple[FaultyStore, CommitStateUnknown]:
    """An append as version 3, under the token `t`, that nobody heard of again; its request is still under way."""
    store = FaultyStore(MemoryStore(f"ghosts-{uuid.uuid4().hex}"))
    append(store.uri, 1)
    append(store.uri, 2)
    faulty = FaultyStore(MemoryStore(store.uri.removeprefix("memory://")), *_deaf())
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


def _deaf() -> tuple[Fault, ...]:
    """The create of a manifest arrives later, and whoever looks for it then gets no answer."""
    return (
        Fault("put_if_absent", "_versions/*", call=None, when=When.LATE),
        Fault("get", "_versions/18446744073709551612.manifest", call=None),
    )


def overtaken(store: FaultyStore, *kept: int) -> lance_ops.LanceDataset:
    """Let others make versions 3 to 5 and clean up all before that are not `kept`, and then the lost request arrive."""
    for number in (3, 4, 5):
        dataset = append(store.uri, number)
    for version in kept:
        dataset.tags.create(f"kept-{version}", version)
    dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    store.deliver_late()
    return lance_ops.dataset(store.uri)


def token_in(dataset: lance_ops.LanceDataset) -> int | None:
    return find_token(dataset.snapshot.store, dataset.snapshot.committer, "t")


def test_it_may_be_the_newest_version_after_all(lost: tuple[FaultyStore, CommitStateUnknown]) -> None:
    store, unknown = lost
    assert lance_ops.dataset(store.uri).resolve(unknown.uuid) is None

    store.deliver_late()

    dataset = lance_ops.dataset(store.uri)
    assert dataset.resolve(unknown.uuid) == token_in(dataset) == 3
    assert append(store.uri, 3).resolve(unknown.uuid) == 3
    assert lance_ops.dataset(store.uri).to_table().column("id").to_pylist() == [1, 2, 99, 3]


def test_who_took_the_version_keeps_it(lost: tuple[FaultyStore, CommitStateUnknown]) -> None:
    store, unknown = lost
    append(store.uri, 3)
    store.deliver_late()

    dataset = lance_ops.dataset(store.uri)
    assert dataset.resolve(unknown.uuid) is None and token_in(dataset) is None
    assert dataset.to_table().column("id").to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("kept", ["the next version", "nothing between"])
def test_a_version_made_anew_after_clean_up_does_not_count(
    lost: tuple[FaultyStore, CommitStateUnknown], kept: str
) -> None:
    store, unknown = lost
    dataset = overtaken(store, *KEPT[kept])
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


def held_batches(dataset: lance_ops.LanceDataset) -> set[str]:
    return set(ingested_batches(dataset.snapshot.latest()))


@pytest.mark.parametrize("kept", ["the next version", "both neighbours", "nothing between"])
def test_clean_up_does_not_keep_what_a_ghost_says_it_did(
    lost: tuple[FaultyStore, CommitStateUnknown], kept: str
) -> None:
    dataset = overtaken(lost[0], *KEPT[kept])
    assert 3 in [version["version"] for version in dataset.versions()]
    assert held_batches(dataset) == set()

    dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)

    assert 3 not in [version["version"] for version in dataset.versions()]
    assert token_in(dataset) is None
    assert held_batches(dataset) == set()
    assert list(dataset.snapshot.store.list(TOKENS_DIR)) == []


def test_a_replay_from_the_version_before_a_ghost_is_not_taken_for_done(
    lost: tuple[FaultyStore, CommitStateUnknown],
) -> None:
    store, _ = lost
    stale = lance_ops.dataset(store.uri, version=2)
    overtaken(store, 2)

    with pytest.raises(RetryableConflict):
        commit_operation(stale.snapshot, ReserveFragments(1), properties={TOKEN: "t"})
    assert lance_ops.dataset(store.uri).to_table().column("id").to_pylist() == [1, 2, 3, 4, 5]


def test_a_held_version_is_known_to_count_though_all_around_it_went() -> None:
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
    assert token_in(dataset) == 2 and held_batches(dataset) == {"b"}


@pytest.mark.interop
@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_versions_of_the_reference_are_known_to_come_out_of_each_other(stable_row_ids: bool, tmp_path: Path) -> None:
    """None of them is taken for a ghost, which would have its work done a second time."""
    lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    store = LocalStore(str(tmp_path / "table"))
    live(lance, str(tmp_path / "table"), stable_row_ids=stable_row_ids)
    committer = PutIfAbsentCommitter(store)
    read = partial(read_manifest, store, committer)
    landed = [read_version(store, committer, version) for version in committer.versions()]
    assert len(landed) > 20
    for before, made, after in zip(landed, landed[1:], landed[2:], strict=False):
        assert is_in_history(made, after, read), (made.transaction, after.transaction)
        assert is_in_history(replace(made, transaction=Transaction(1, ReserveFragments(1))), after, read)
        assert descends_from(after, made.manifest, before.manifest, read)

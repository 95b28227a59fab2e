"""A first version is committed without another look where this process has just found no dataset."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lance_ops.committers import Committed, Conflict, PutIfAbsentCommitter
from lance_ops.committers.recently_empty import RecentlyEmpty
from lance_ops.core.errors import CommitStateUnknown
from lance_ops.core.file_names import ManifestNaming
from lance_ops.store import FaultyStore, MemoryStore, ObjectInfo
from lance_ops.transactions import Overwrite, Transaction, commit
from tests.table.samples import SCHEMA
from tests.transactions.samples import new_fragment


class Distant(MemoryStore):
    """A store whose reads are requests."""

    reads_in_place = False

    @property
    def lists_in_order(self) -> bool:
        return True


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> RecentlyEmpty:
    found = RecentlyEmpty()
    monkeypatch.setattr("lance_ops.committers.put_if_absent.RECENTLY_EMPTY", found)
    return found


def test_a_look_serves_one_commit_within_seconds_of_its_begin() -> None:
    looks, now = RecentlyEmpty(), time.monotonic()
    looks.note("place", now + 3600)
    assert not looks.take("another place")
    assert looks.take("place")
    assert not looks.take("place")
    looks.note("place", now - 5)
    assert not looks.take("place")


def test_a_look_is_as_old_as_its_request(looks: RecentlyEmpty) -> None:
    listed = list[float]()

    class Noting(Distant):
        def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
            listed.append(time.monotonic())
            return super().list(prefix)

    for look in (PutIfAbsentCommitter(Noting()).finds_nothing, PutIfAbsentCommitter(Noting()).latest):
        assert not looks._looks and look() in (True, None)
        (began,) = looks._looks.values()
        assert began <= listed[0]
        looks.reset()
        listed.clear()


def test_the_commit_of_a_first_version_makes_no_second_look(looks: RecentlyEmpty) -> None:
    store = FaultyStore(Distant())
    assert PutIfAbsentCommitter(store).finds_nothing()
    committer, num_calls = PutIfAbsentCommitter(store), len(store.calls)
    assert committer.latest(known=0) is None
    assert committer.commit(1, b"first") == Committed(1, committer.location(1))
    asked = [
        call.operation for call in store.calls[num_calls:] if call.operation != "stamp"
    ]  # there is none to ask for
    assert asked == ["put_if_absent"]
    assert committer.latest(known=0) == 1  # a look serves once, and not after a commit


def test_a_version_that_was_made_after_the_look_is_a_conflict(looks: RecentlyEmpty) -> None:
    store = Distant()
    slow, quick = PutIfAbsentCommitter(store), PutIfAbsentCommitter(store)
    assert slow.finds_nothing()
    quick.commit(1, b"theirs")
    looks.note((store.proof_scope, store.uri), time.monotonic())  # as in the other writer's process
    assert slow.latest(known=0) is None
    outcome = slow.commit(1, b"ours")
    assert isinstance(outcome, Conflict) and outcome.theirs.to_pybytes() == b"theirs"


def test_a_first_version_beside_one_of_the_other_scheme_is_of_unknown_outcome(looks: RecentlyEmpty) -> None:
    store = Distant()
    assert PutIfAbsentCommitter(store).finds_nothing()
    first = Transaction(0, Overwrite((new_fragment("first"),), SCHEMA))
    commit(PutIfAbsentCommitter(store, new_naming=ManifestNaming.V1), store, replace(first, uuid="theirs"))
    looks.note((store.proof_scope, store.uri), time.monotonic())  # as in the other writer's process
    with pytest.raises(CommitStateUnknown, match="another writer has made a first version"):
        commit(PutIfAbsentCommitter(store), store, first)


def test_only_an_empty_place_is_reported_as_one(looks: RecentlyEmpty) -> None:
    store = Distant()
    store.put("_latest.manifest", b"a table of the oldest writers, or any other object")
    assert not PutIfAbsentCommitter(store).finds_nothing()
    assert not PutIfAbsentCommitter(MemoryStore()).finds_nothing()  # where a look is no request, callers look

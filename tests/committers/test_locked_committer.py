"""A commit holds the caller's lock, also on a store without a conditional create."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa
import pytest

from lance_ops.commit import CommitConflictError
from lance_ops.committers import (
    CommitLock,
    Committed,
    Conflict,
    LockedCommitter,
    PutIfAbsentCommitter,
    Unknown,
)
from lance_ops.committers.create_retries import CreateRetries
from lance_ops.core.errors import CommitStateUnknown, RetryableConflict, UnsafeStore, WriteRefused
from lance_ops.store import BytesLike, Fault, FaultyStore, MemoryStore, PutOutcome, SimulatedCrash, Store


class Overwriting(MemoryStore):
    """A store whose server ignores the condition of a conditional create, and overwrites."""

    @property
    def needs_proof(self) -> bool:
        return True

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        self.put(path, data)
        return PutOutcome.CREATED


class Recorded:
    """A lock that records what happens to it, and raises errors where a test wants them."""

    def __init__(self, on_enter: Exception | None = None, on_exit: Exception | None = None) -> None:
        self.events: list[object] = []
        self.on_enter = on_enter
        self.on_exit = on_exit

    def __call__(self, version: int) -> Recorded:
        self.events.append(version)
        return self

    def __enter__(self) -> None:
        self.events.append("enter")
        if self.on_enter is not None:
            raise self.on_enter

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self.events.append("exit" if kind is None else kind)
        if self.on_exit is not None:
            raise self.on_exit


def locked(store: Store, lock: CommitLock) -> LockedCommitter:
    return LockedCommitter(PutIfAbsentCommitter(store), lock)


@pytest.mark.parametrize("store", [MemoryStore(), Overwriting()], ids=["safe store", "unsafe store"])
def test_a_commit_creates_a_version_once_and_holds_the_lock_meanwhile(store: Store) -> None:
    lock = Recorded()
    prepared: list[list[object]] = []

    def prepare() -> bool:
        prepared.append([*lock.events])
        return True

    committer = locked(store, lock)
    assert committer.commit(1, b"ours", prepare=prepare) == Committed(1, committer.location(1))
    assert committer.commit(1, b"theirs") == Conflict(1, pa.py_buffer(b"ours"))
    assert prepared == [[1, "enter"]]
    assert lock.events == [1, "enter", "exit"] * 2
    assert committer.read(1).to_pybytes() == b"ours" and committer.versions() == [1] and committer.exists(1)


def test_an_unsafe_store_is_refused_without_a_lock() -> None:
    with pytest.raises(UnsafeStore, match="commit_lock"):
        PutIfAbsentCommitter(Overwriting()).commit(1, b"ours")


def test_writers_that_share_a_lock_make_each_version_once_on_an_unsafe_store() -> None:
    store, mutex = Overwriting(), threading.Lock()

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        with mutex:
            yield

    def write(writer: int) -> list[int]:
        committer = locked(store, lock)
        outcomes = [committer.commit(version, b"%d of %d" % (version, writer)) for version in range(1, 21)]
        return [outcome.version for outcome in outcomes if isinstance(outcome, Committed)]

    with ThreadPoolExecutor(4) as pool:
        won = [version for versions in pool.map(write, range(4)) for version in versions]
    assert sorted(won) == list(range(1, 21))


@pytest.mark.parametrize(
    ("error", "expected"), [(CommitConflictError("busy"), RetryableConflict), (RuntimeError("broken"), WriteRefused)]
)
def test_a_lock_that_is_not_acquired_stops_the_commit(error: Exception, expected: type[Exception]) -> None:
    store, lock = MemoryStore(), Recorded(on_enter=error)
    with pytest.raises(expected, match=r"version 1.*(busy|broken)") as raised:
        locked(store, lock).commit(1, b"ours")
    assert raised.value.__cause__ is error
    assert lock.events == [1, "enter"] and list(store.list()) == []


def test_under_a_lock_no_transaction_makes_the_proof() -> None:
    assert PutIfAbsentCommitter(Overwriting()).relies_on_conditional_create
    assert not locked(Overwriting(), Recorded()).relies_on_conditional_create


def test_a_lock_that_is_not_released_leaves_the_outcome_unknown() -> None:
    store = MemoryStore()
    outcome = locked(store, Recorded(on_exit=RuntimeError("stuck"))).commit(1, b"ours")
    assert isinstance(outcome, Unknown) and "stuck" in outcome.reason and "Committed" in outcome.reason
    assert PutIfAbsentCommitter(store).read(1).to_pybytes() == b"ours"


def test_a_commit_that_fails_releases_the_lock_with_its_error() -> None:
    lock = Recorded()
    store = FaultyStore(MemoryStore(), Fault("put_if_absent", crash=True))
    with pytest.raises(SimulatedCrash):
        locked(store, lock).commit(1, b"ours")
    assert lock.events == [1, "enter", SimulatedCrash]


@pytest.mark.parametrize("on_exit", [None, RuntimeError("stuck")], ids=["released", "kept"])
def test_a_lock_is_told_that_the_outcome_is_not_known(on_exit: Exception | None) -> None:
    lock = Recorded(on_exit=on_exit)
    store = FaultyStore(MemoryStore(), Fault("put_if_absent", call=None), Fault("get", "_versions/*", call=None))
    committer = LockedCommitter(PutIfAbsentCommitter(store, retries=CreateRetries(2, 0.001)), lock)
    committer.latest()
    outcome = committer.commit(1, b"ours")
    assert isinstance(outcome, Unknown)
    assert lock.events == [1, "enter", CommitStateUnknown]


def test_a_second_lock_replaces_the_first() -> None:
    first, second = Recorded(), Recorded()
    LockedCommitter(locked(MemoryStore(), first), second).commit(1, b"ours")
    assert (first.events, second.events) == ([], [1, "enter", "exit"])


def test_an_abandoned_commit_on_an_unsafe_store_writes_nothing() -> None:
    store = Overwriting()
    locked(store, Recorded()).commit(1, b"ours", prepare=lambda: False)
    assert list(store.list()) == []

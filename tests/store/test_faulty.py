"""The failing store fails in the chosen way at the chosen calls, and nowhere else."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from lance_ops.core.errors import StoreError
from lance_ops.store import Call, Fault, FaultyStore, LocalStore, MemoryStore, PutOutcome, SimulatedCrash, When


def test_only_the_matching_call_fails() -> None:
    store = FaultyStore(MemoryStore(), Fault("put", "data/*", call=2))
    store.put("data/1", b"x")
    store.put("other", b"x")
    with pytest.raises(StoreError, match="put memory://.*data/2: simulated failure, before"):
        store.put("data/2", b"x")
    store.put("data/3", b"x")

    assert {found.path for found in store.list()} == {"data/1", "data/3", "other"}
    assert store.calls[:2] == (Call("put", "data/1"), Call("put", "other"))


def test_a_fault_without_a_number_strikes_every_time() -> None:
    store = FaultyStore(MemoryStore(), Fault("get", call=None))
    store.put("a", b"x")
    for _ in range(3):
        with pytest.raises(StoreError):
            store.get("a")


def test_after_does_the_operation_and_reports_an_error() -> None:
    store = FaultyStore(MemoryStore(), Fault("put_if_absent", when=When.AFTER), Fault("delete", when=When.AFTER))
    with pytest.raises(StoreError):
        store.put_if_absent("a", b"x")
    assert store.put_if_absent("a", b"y") is PutOutcome.EXISTS
    with pytest.raises(StoreError):
        store.delete("a")
    assert not store.exists("a")


def test_late_does_the_operation_when_it_is_delivered() -> None:
    store = FaultyStore(MemoryStore(), Fault("put_if_absent", when=When.LATE))
    with pytest.raises(StoreError):
        store.put_if_absent("a", b"late")
    assert not store.exists("a")
    store.deliver_late()
    store.deliver_late()
    assert store.get("a").to_pybytes() == b"late"


def test_partial_leaves_half_a_write_and_returns_half_a_read() -> None:
    store = FaultyStore(
        MemoryStore(),
        Fault("put", "d/a", when=When.PARTIAL),
        Fault("get", when=When.PARTIAL),
        Fault("get_ranges", when=When.PARTIAL),
        Fault("list_names", when=When.PARTIAL),
    )
    with pytest.raises(StoreError):
        store.put("d/a", b"12345678")
    assert not store.exists("d/a")
    assert [found.size_bytes for found in store.list_temporary("d")] == [4]

    store.put("b", b"12345678")
    store.put("c", b"12345678")
    assert store.get("b").to_pybytes() == b"1234"
    assert store.get_range("b", 2, 8).to_pybytes() == b"345"
    assert store.list_names("") == ["b"]


# What a dead process had open, nobody closes.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_dead_process_does_nothing_more_and_cleans_up_nothing(tmp_path: Path) -> None:
    local = LocalStore(str(tmp_path))
    store = FaultyStore(local, Fault("close", crash=True))

    def write_and_die() -> None:
        with store.open_writer("a") as writer:
            writer.write(b"half")

    with pytest.raises(SimulatedCrash):
        write_and_die()
    with pytest.raises(SimulatedCrash):
        store.exists("a")
    assert list(local.list()) == []
    assert len(list(local.list_temporary())) == 1


@pytest.mark.parametrize(("when", "num_written"), [(When.BEFORE, 4), (When.PARTIAL, 6), (When.AFTER, 8)])
def test_a_write_fails_at_the_chosen_moment(when: When, num_written: int) -> None:
    store = FaultyStore(MemoryStore(), Fault("write", call=2, when=when))
    writer = store.open_writer("a")
    writer.write(b"1234")
    with pytest.raises(StoreError):
        writer.write(b"5678")
    assert writer.tell() == num_written
    writer.abort()
    assert not store.exists("a")


def test_children_share_the_faults_and_a_pickle_counts_from_zero() -> None:
    store = FaultyStore(MemoryStore(), Fault("put", "tree/x/a", call=2))
    child = store.child("tree").child("x")
    child.put("a", b"1")
    again = pickle.loads(pickle.dumps(child))
    with pytest.raises(StoreError):
        child.put("a", b"2")
    again.put("a", b"2")
    with pytest.raises(StoreError):
        again.put("a", b"3")

    assert store.calls == (Call("put", "tree/x/a"),) * 2
    assert "tree/x/a" in repr(store)

"""In every kind of store, an object comes into being once and whole, or not at all."""

from __future__ import annotations

import gc
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.store import FsspecStore, LocalStore, PutOutcome, Store
from tests.conformance.races import NUM_RACERS, race_in_processes, race_in_threads
from tests.conformance.stores.stored_paths import paths_of


def test_put_if_absent_creates_once_and_keeps_the_first(store: Store) -> None:
    assert store.put_if_absent("v/1", b"first") is PutOutcome.CREATED
    assert store.put_if_absent("v/1", b"second") is PutOutcome.EXISTS
    assert store.get("v/1").to_pybytes() == b"first"

    store.delete("v/1")
    assert store.put_if_absent("v/1", b"third") is PutOutcome.CREATED
    assert list(store.list_temporary()) == []


def test_put_if_absent_creates_the_object_between_its_callbacks(store: Store) -> None:
    seen: list[bool] = []

    def look() -> bool:
        seen.append(store.exists("v/1"))
        return True

    outcome = store.put_if_absent_with_callbacks("v/1", b"first", prepare=look, follow_up=look)
    assert (outcome, seen) == (PutOutcome.CREATED, [False, True])
    again = store.put_if_absent_with_callbacks("v/1", b"second", prepare=lambda: True, follow_up=look)
    assert (again, seen) == (PutOutcome.EXISTS, [False, True])
    assert store.get("v/1") == pa.py_buffer(b"first")


def test_put_if_absent_creates_nothing_if_prepare_returns_false(store: Store) -> None:
    outcome = store.put_if_absent_with_callbacks("v/1", b"x", prepare=lambda: False, follow_up=pytest.fail)
    assert outcome is PutOutcome.ABANDONED
    assert list(store.list()) == list(store.list_temporary()) == []


def test_put_if_absent_refuses_a_name_that_put_wrote(store: Store) -> None:
    store.put("a", b"put")
    assert store.put_if_absent("a", b"late") is PutOutcome.EXISTS
    assert store.get("a").to_pybytes() == b"put"


def _create_in(store: Store, path: str, racer: int) -> PutOutcome:
    return store.put_if_absent(path, b"%d" % racer * 1000)


def test_of_racing_threads_exactly_one_creates(store: Store) -> None:
    for a_round in range(3 if isinstance(store, FsspecStore) else 20):
        path = f"v/{a_round}"
        outcomes = race_in_threads(partial(_create_in, store, path))

        assert outcomes.count(PutOutcome.CREATED) == 1
        assert outcomes.count(PutOutcome.EXISTS) == NUM_RACERS - 1
        assert store.get(path).to_pybytes() == b"%d" % outcomes.index(PutOutcome.CREATED) * 1000


def _create(root: str, a_round: int, racer: int) -> PutOutcome:
    return _create_in(LocalStore(root), f"v/{a_round}", racer)


def test_of_racing_processes_exactly_one_creates_a_local_file(tmp_path: Path) -> None:
    num_rounds = 20
    rounds = race_in_processes(partial(_create, str(tmp_path)), num_rounds)

    store = LocalStore(str(tmp_path))
    for a_round, outcomes in enumerate(rounds):
        assert outcomes.count(PutOutcome.CREATED) == 1
        assert store.get(f"v/{a_round}").to_pybytes() == b"%d" % outcomes.index(PutOutcome.CREATED) * 1000
    assert len(paths_of(store)) == num_rounds
    assert list(store.list_temporary()) == []


def test_a_writer_shows_its_object_only_when_it_closes(store: Store) -> None:
    chunks = [b"first ", pa.py_buffer(b"second "), memoryview(b"third"), bytearray(b"!")]
    writer = store.open_writer("data/a")
    for chunk in chunks:
        assert not store.exists("data/a")
        assert paths_of(store) == set()
        writer.write(chunk)
    assert writer.tell() == 19
    writer.close()
    writer.close()

    assert store.get("data/a").to_pybytes() == b"first second third!"
    assert list(store.list_temporary()) == []


def test_a_writer_that_replaces_shows_the_old_object_until_it_closes(store: Store) -> None:
    store.put("a", b"old")
    with store.open_writer("a") as writer:
        writer.write(b"new")
        assert store.get("a").to_pybytes() == b"old"
    assert store.get("a").to_pybytes() == b"new"


def test_an_aborted_writer_leaves_nothing(store: Store) -> None:
    writer = store.open_writer("data/a")
    writer.write(b"x" * 3_000_000)
    writer.abort()
    writer.abort()
    del writer

    assert paths_of(store) == set()
    assert list(store.list_temporary()) == []


def test_an_exception_aborts_a_writer(store: Store) -> None:
    store.put("a", b"old")

    def fail_while_writing() -> None:
        with store.open_writer("a") as writer:
            writer.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_while_writing()

    assert store.get("a").to_pybytes() == b"old"
    assert list(store.list_temporary()) == []


# A writer that nobody closes is what is tested.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_writer_that_is_never_closed_creates_nothing(store: Store) -> None:
    writer = store.open_writer("data/a")
    writer.write(b"x" * 100)
    del writer
    gc.collect()
    assert paths_of(store) == set()


def test_abort_after_close_keeps_the_object(store: Store) -> None:
    writer = store.open_writer("a")
    writer.write(b"x")
    writer.close()
    writer.abort()
    assert store.get("a").to_pybytes() == b"x"

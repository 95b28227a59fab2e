"""Children, copies, forks and threads of a store of any kind use the same objects."""

from __future__ import annotations

import multiprocessing
import pickle
from typing import Any

import pytest

from lance_ops.core.errors import LanceOpsError
from lance_ops.store import FaultyStore, FsspecStore, LocalStore, Store, open_store
from tests.conformance.races import NUM_RACERS, race_in_threads
from tests.conformance.stores.stored_paths import paths_of


def test_a_child_store_reads_and_writes_a_directory(store: Store) -> None:
    child = store.child("tree/branch")
    child.put("_versions/1", b"x")

    assert child.uri == store.uri_of("tree/branch")
    assert store.get("tree/branch/_versions/1").to_pybytes() == b"x"
    assert paths_of(child) == {"_versions/1"}
    assert child.child("_versions").list_names("") == ["1"]


def test_a_pickled_store_opens_the_same_location(store: Store) -> None:
    store.put("a", b"x")
    again = pickle.loads(pickle.dumps(store))

    assert again.uri == store.uri
    assert again.get("a").to_pybytes() == b"x"
    assert pickle.loads(pickle.dumps(store.child("b"))).uri == store.child("b").uri


def test_the_uri_of_a_store_opens_the_same_location(store: Store) -> None:
    store.put("a", b"x")
    options = dict(store.storage_options) if isinstance(store, FsspecStore) else None
    for uri in (store.uri, f"{store.uri}/"):
        again = open_store(uri, options)
        assert again.uri == store.uri
        assert again.get("a").to_pybytes() == b"x"


def _use_in_child(store: Store, answers: Any) -> None:
    try:
        store.put("from-child", store.get("from-parent"))
        answers.put([piece.to_pybytes() for piece in store.get_ranges("from-parent", [(0, 2), (2, 4)])])
    except LanceOpsError as error:
        answers.put(repr(error))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # forking beside threads is what is tested
def test_a_forked_child_can_use_a_store_that_its_parent_used(store: Store) -> None:
    store.put("from-parent", b"abcd")
    store.get_ranges("from-parent", [(0, 1), (3, 4)])
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_use_in_child, args=(store, answers))
    child.start()

    assert answers.get(timeout=60) == [b"ab", b"cd"]
    child.join()
    answers.close()
    answers.join_thread()
    store.put("from-parent", b"still works here")
    if isinstance(store, LocalStore | FsspecStore | FaultyStore):  # memory is the child's own
        assert store.get("from-child").to_pybytes() == b"abcd"


def test_many_threads_read_and_write_at_once(store: Store) -> None:
    def work(racer: int) -> list[bytes]:
        path = f"data/{racer}"
        store.put(path, b"%02d" % racer * 5000)
        return [piece.to_pybytes() for piece in store.get_ranges(path, [(0, 4), (9996, 10_000)])]

    assert race_in_threads(work) == [[b"%02d" % racer * 2] * 2 for racer in range(NUM_RACERS)]
    assert len(paths_of(store, "data")) == NUM_RACERS

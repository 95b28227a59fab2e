"""Conformance tests of every kind of store."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import threading
from collections.abc import Callable
from datetime import UTC, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.core.errors import CorruptFile, InvalidInput, LanceOpsError, ObjectNotFound, UnsafePath
from lance_ops.store import BytesLike, FaultyStore, FsspecStore, LocalStore, PutOutcome, Store, open_store
from lance_ops.store.paths import TEMPORARY_PREFIX
from tests.conformance.races import NUM_RACERS, race_in_processes, race_in_threads

UNSAFE_PATHS = ["", "/etc/passwd", "..", "../x", "a/../../x", "a/./b", "a//b", "a/", "a\0b", "a\\b", "s3://other/x"]
MISSING = "data/missing"


def paths_of(store: Store, prefix: str = "") -> set[str]:
    return {found.path for found in store.list(prefix)}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, pa.py_buffer])
def test_an_object_of_any_bytes_is_read_as_written(store: Store, kind: Callable[[bytes], BytesLike]) -> None:
    store.put("data/a", kind(b"0123456789"))

    assert store.get("data/a") == pa.py_buffer(b"0123456789")
    assert store.size("data/a") == 10
    assert store.exists("data/a")


def test_an_empty_object_exists_and_is_read(store: Store) -> None:
    store.put("a", b"")
    assert store.put_if_absent("b", b"") is PutOutcome.CREATED
    store.open_writer("c").close()

    for path in ("a", "b", "c"):
        assert store.get(path).size == 0
        assert store.size(path) == 0
        assert store.exists(path)
        assert store.get_ranges(path, [(0, 0)])[0].size == 0


def test_put_replaces_the_whole_object(store: Store) -> None:
    store.put("a", b"long content")
    store.put("a", b"short")

    assert store.get("a").to_pybytes() == b"short"
    assert store.size("a") == 5


def test_a_put_without_durability_is_readable(store: Store) -> None:
    store.put("a", b"1", durable=False)
    assert store.get("a").to_pybytes() == b"1"


@pytest.mark.parametrize("later", [b"22", b"333", b"4"], ids=["as long", "longer", "shorter"])
def test_a_hint_is_read_as_last_written(store: Store, later: bytes) -> None:
    store.put_hint("folder/hint", b"11")
    assert store.get("folder/hint").to_pybytes() == b"11"
    store.put_hint("folder/hint", later)
    assert store.get("folder/hint").to_pybytes() == later


def test_a_directory_stamp_changes_when_a_name_is_added(store: Store) -> None:
    store.put("v/1", b"x")
    sealed = store.seal_directory("v")
    assert sealed is None or store.directory_stamp("v") == sealed
    store.put("w/1", b"x")
    assert store.directory_stamp("v") == sealed
    store.put("v/2", b"x")
    assert sealed is None or store.directory_stamp("v") != sealed


def test_a_buffer_stays_valid_after_its_object_is_replaced_or_deleted(store: Store) -> None:
    store.put("a", b"old" * 5000)
    whole, part = store.get("a"), store.get_range("a", 3, 6)
    store.put("a", b"new")
    store.delete("a")

    assert whole.to_pybytes() == b"old" * 5000
    assert part.to_pybytes() == b"old"


def test_a_reader_never_sees_a_mixture_of_two_puts(store: Store) -> None:
    if not store.replaces_at_once:
        pytest.skip("HDFS has no rename that replaces: between two puts there is nothing")
    contents = [letter * 300_000 for letter in (b"a", b"b")]
    store.put("x", contents[0])
    done = threading.Event()

    def replace() -> None:
        try:
            for turn in range(30):
                store.put("x", contents[turn % 2])
        finally:
            done.set()

    writer = threading.Thread(target=replace)
    writer.start()
    while not done.is_set():
        assert store.get("x").to_pybytes() in contents
    writer.join()


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.get(MISSING),
        lambda store: store.get_range(MISSING, 0, 4),
        lambda store: store.get_ranges(MISSING, [(0, 4), (1 << 30, (1 << 30) + 1)]),
        lambda store: store.size(MISSING),
        lambda store: store.copy(MISSING, "target"),
    ],
    ids=["get", "get_range", "get_ranges", "size", "copy"],
)
def test_a_missing_object_raises_object_not_found(store: Store, read: Callable[[Store], object]) -> None:
    store.put("data/missing-not", b"x")
    with pytest.raises(ObjectNotFound, match="data/missing") as caught:
        read(store)
    assert isinstance(caught.value, FileNotFoundError)
    assert not store.exists(MISSING)
    assert not store.exists("target")


def test_reading_a_directory_raises_object_not_found(store: Store) -> None:
    store.put("a/b/c", b"1")

    assert not store.exists("a/b")
    for read in (store.get, store.size):
        with pytest.raises(ObjectNotFound):
            read("a/b")
    store.delete("a/b")
    assert store.exists("a/b/c")


def test_no_object_is_found_beneath_an_object(store: Store) -> None:
    store.put("a", b"1")

    assert not store.exists("a/b")
    with pytest.raises(ObjectNotFound):
        store.get("a/b")
    store.delete("a/b")
    assert list(store.list("a")) == []
    assert list(store.list_names("a")) == []


@pytest.mark.parametrize("path", UNSAFE_PATHS)
def test_a_path_that_could_leave_the_root_is_refused(store: Store, path: str) -> None:
    uses: list[Callable[[], object]] = [
        lambda: store.get(path),
        lambda: store.get_ranges(path, [(0, 1)]),
        lambda: store.size(path),
        lambda: store.exists(path),
        lambda: store.put(path, b"x"),
        lambda: store.put_if_absent(path, b"x"),
        lambda: store.make_durable(path),
        lambda: store.open_writer(path),
        lambda: store.delete(path),
        lambda: store.delete_several([path]),
        lambda: store.copy(path, "b"),
        lambda: store.copy("b", path),
        lambda: store.child(path),
    ]
    for use in uses:
        with pytest.raises(UnsafePath):
            use()


@pytest.mark.parametrize("prefix", ["/", "..", "/etc", "a/../..", "a//"])
def test_a_directory_that_could_leave_the_root_is_refused(store: Store, prefix: str) -> None:
    for use in (store.list, store.list_temporary, store.list_names, store.list_folders):
        with pytest.raises(UnsafePath):
            list(use(prefix))


def test_parts_of_several_objects_are_read_into_one_buffer(store: Store) -> None:
    objects = {"d/a": b"one", "d/b": b"x", "d/c": bytes(range(256))}
    for path, data in objects.items():
        store.put(path, data)
    out = bytearray(b"-" * 100)
    parts = [[(0, 4, 1)], [(0, 2, 8)], [(10, 3, 20), (250, 9, 30)]]
    assert store.read_parts([*objects], parts, memoryview(out)) == [3, 1, 3, 6]
    assert out[:10] == b"-one----x-"
    assert out[20:37] == bytes([10, 11, 12]) + b"-" * 7 + bytes(range(250, 256)) + b"-"


def test_ranges_are_returned_in_the_requested_order(store: Store) -> None:
    data = bytes(range(256)) * 4096
    store.put("a", data)
    ranges = [(1_000_000, 1_000_010), (0, 4), (2, 6), (500, 500), (0, len(data)), (len(data) - 1, len(data)), (2, 6)]

    found = store.get_ranges("a", ranges)

    assert [piece.to_pybytes() for piece in found] == [data[start:end] for start, end in ranges]
    assert store.get_range("a", 7, 9).to_pybytes() == data[7:9]
    assert store.get_ranges("a", []) == []


@pytest.mark.parametrize("wrong", [(8, 11), (10, 11), (11, 12), (0, 1 << 40), (1 << 30, (1 << 30) + 4)])
def test_a_range_past_the_end_raises_corrupt_file(store: Store, wrong: tuple[int, int]) -> None:
    store.put("a", b"0123456789")
    with pytest.raises(CorruptFile, match="a"):
        store.get_ranges("a", [(0, 3), wrong])


@pytest.mark.parametrize("wrong", [(3, 2), (-1, 2)])
def test_an_invalid_range_raises_invalid_input(store: Store, wrong: tuple[int, int]) -> None:
    store.put("a", b"0123456789")
    with pytest.raises(InvalidInput):
        store.get_ranges("a", [wrong])


def test_list_returns_all_objects_in_a_directory_and_no_others(store: Store) -> None:
    for path in ("data/a", "data/b/c", "data/b/d/e", "data2/f", "data.txt", "g"):
        store.put(path, path.encode())

    assert paths_of(store) == {"data/a", "data/b/c", "data/b/d/e", "data2/f", "data.txt", "g"}
    assert paths_of(store, "data") == paths_of(store, "data/") == {"data/a", "data/b/c", "data/b/d/e"}
    assert paths_of(store, "data/b/d") == {"data/b/d/e"}
    assert paths_of(store, "dat") == paths_of(store, "none/none") == set()
    assert {found.path: found.size_bytes for found in store.list()} == {path: len(path) for path in paths_of(store)}
    if store.lists_in_order:
        listed = [found.path for found in store.list()]
        assert listed == sorted(listed)


def test_list_names_returns_the_names_directly_in_a_directory(store: Store) -> None:
    for path in ("v/3", "v/1", "v/2", "v/deeper/4", "v2/5", "6"):
        store.put(path, b"x")

    assert sorted(store.list_names("v")) == sorted(store.list_names("v/"))
    assert set(store.list_names("v")) - {"deeper"} == {"1", "2", "3"}
    assert set(store.list_names("")) - {"v", "v2"} == {"6"}
    assert list(store.list_names("none")) == []
    if store.lists_in_order:
        assert store.list_names("v") == ["1", "2", "3"]
        assert store.list_names("v", limit=2) == ["1", "2"]


def test_list_folders_returns_the_folders_directly_in_a_directory(store: Store) -> None:
    for path in ("a", "b/1", "b/below/deeper/2", "b2/1", "c d/é/1"):
        store.put(path, b"x")

    assert sorted(store.list_folders("")) == ["b", "b2", "c d"]
    assert list(store.list_folders("b")) == list(store.list_folders("b/")) == ["below"]
    assert list(store.list_folders("c d")) == ["é"]
    assert list(store.list_folders("b2")) == list(store.list_folders("none")) == []


def test_temporary_objects_do_not_count_towards_a_listing_limit(store: Store) -> None:
    for name in (f"{TEMPORARY_PREFIX}1", f"{TEMPORARY_PREFIX}2", "1", "2", "3"):
        store.put(f"v/{name}", b"x")
    if store.lists_in_order:
        assert store.list_names("v", limit=2) == ["1", "2"]


def test_the_stores_clock_agrees_with_its_objects_times(store: Store) -> None:
    before = store.now()
    store.put("a", b"x")
    (found,) = store.list()

    assert found.modified.tzinfo is UTC
    assert before - timedelta(seconds=2) <= found.modified <= store.now() + timedelta(seconds=2)
    assert list(store.list_temporary()) == []


def test_temporary_objects_are_found_by_list_temporary_only(store: Store) -> None:
    left = f"data/{TEMPORARY_PREFIX}123"
    store.put(left, b"half")
    store.put("data/whole", b"whole")

    assert paths_of(store) == {"data/whole"}
    assert "whole" in store.list_names("data")
    assert [found.path for found in store.list_temporary()] == [left]
    assert [found.path for found in store.list_temporary("other")] == []
    store.delete(left)
    assert list(store.list_temporary()) == []


def test_delete_removes_one_object_and_ignores_a_missing_one(store: Store) -> None:
    store.put("a/b/c", b"1")
    store.put("a/b/d", b"2")

    store.delete("a/b/c")
    store.delete("a/b/c")
    store.delete("none/none")

    assert paths_of(store) == {"a/b/d"}
    store.delete("a/b/d")
    assert paths_of(store) == set()
    store.put("a/b/c", b"again")
    assert store.get("a/b/c").to_pybytes() == b"again"


def test_delete_several_removes_objects_and_ignores_missing_ones(store: Store) -> None:
    for path in ("a/b/c", "a/b/d", "a/e", "f", "kept"):
        store.put(path, b"1")

    assert store.delete_several(["a/b/c", "a/b/d", "a/b/missing", "a/e", "none/none", "a/b", "f"]) == set()

    assert paths_of(store) == {"kept"}
    store.put("a/b/c", b"again")
    assert store.get("a/b/c").to_pybytes() == b"again"


def test_a_cleared_store_is_empty_and_usable(store: Store) -> None:
    beside, within = store.child("beside"), store.child("within")
    for each in (beside, within):
        each.put("a", b"1")
        each.put("b/c/d", b"2")
    within.clear()
    assert list(within.list()) == [] and not within.exists("b/c/d")
    assert {info.path for info in store.list()} == {"beside/a", "beside/b/c/d"}
    within.clear()
    within.put("a", b"3")
    assert within.get("a").to_pybytes() == b"3"


def test_a_copy_onto_itself_changes_nothing(store: Store) -> None:
    store.put("a", b"content")
    store.copy("a", "a")
    assert store.get("a").to_pybytes() == b"content"
    with pytest.raises(ObjectNotFound):
        store.copy("b", "b")


def test_copy_keeps_the_source(store: Store) -> None:
    store.put("a", b"content")
    store.put("c/d", b"older and longer")

    store.copy("a", "b/c")
    store.copy("a", "c/d")

    assert [store.get(path).to_pybytes() for path in ("a", "b/c", "c/d")] == [b"content"] * 3


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


def test_make_durable_requires_existing_objects(store: Store) -> None:
    store.put("a", b"x", durable=False)
    store.make_durable("a")
    assert store.get("a").to_pybytes() == b"x"


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

"""Objects of every kind of store are read whole and in ranges as they were last written."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

from lance_ops.core.errors import CorruptFile, InvalidInput, ObjectNotFound
from lance_ops.store import BytesLike, PutOutcome, Store

MISSING = "data/missing"


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


def test_make_durable_requires_existing_objects(store: Store) -> None:
    store.put("a", b"x", durable=False)
    store.make_durable("a")
    assert store.get("a").to_pybytes() == b"x"


@pytest.mark.parametrize("later", [b"22", b"333", b"4"], ids=["as long", "longer", "shorter"])
def test_a_hint_is_read_as_last_written(store: Store, later: bytes) -> None:
    store.put_hint("folder/hint", b"11")
    assert store.get("folder/hint").to_pybytes() == b"11"
    store.put_hint("folder/hint", later)
    assert store.get("folder/hint").to_pybytes() == later


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

"""Every kind of store lists, copies and deletes the objects of a folder, and none outside of its root."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta

import pytest

from lance_ops.core.errors import ObjectNotFound, UnsafePath
from lance_ops.store import Store
from lance_ops.store.paths import TEMPORARY_PREFIX
from tests.conformance.stores.stored_paths import paths_of

UNSAFE_PATHS = ["", "/etc/passwd", "..", "../x", "a/../../x", "a/./b", "a//b", "a/", "a\0b", "a\\b", "s3://other/x"]


def test_a_directory_stamp_changes_when_a_name_is_added(store: Store) -> None:
    store.put("v/1", b"x")
    sealed = store.seal_directory("v")
    assert sealed is None or store.directory_stamp("v") == sealed
    store.put("w/1", b"x")
    assert store.directory_stamp("v") == sealed
    store.put("v/2", b"x")
    assert sealed is None or store.directory_stamp("v") != sealed


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

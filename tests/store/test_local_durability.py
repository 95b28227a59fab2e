"""When files, their directories and the objects that a new name requires are synced."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lance_ops.core.errors import ObjectNotFound, StoreError, WriteRefused
from lance_ops.store import LocalStore, PutOutcome
from lance_ops.store.local import local_writer
from lance_ops.store.paths import TEMPORARY_PREFIX
from tests.store.on_disk import fail

pytestmark = pytest.mark.usefixtures("one_sync_after_the_other")


def test_a_directory_that_cannot_be_synced_leaves_a_commit_in_doubt(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("v/0", b"x")
    fsync = os.fsync

    def fail_on_directories(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail_on_directories)
    with pytest.raises(StoreError) as caught:
        store.put_if_absent("v/1", b"x")
    assert not isinstance(caught.value, WriteRefused)


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.put("a/b/c", b"x"),
        lambda store: store.put_if_absent("a/b/c", b"x"),
        lambda store: store.open_writer("a/b/c").close(),
        lambda store: (store.put("s", b"x"), store.copy("s", "a/b/c")),
    ],
    ids=["put", "put_if_absent", "writer", "copy"],
)
def test_a_file_and_every_new_directory_above_it_are_synced(
    root: Path, store: LocalStore, steps: list[str], write: Callable[[LocalStore], object]
) -> None:
    write(store)

    assert {str(root.parent), str(root), str(root / "a"), str(root / "a" / "b")} <= set(steps)
    assert any(os.path.basename(path).startswith(TEMPORARY_PREFIX) or path == str(root / "a/b/c") for path in steps)


def test_a_writer_syncs_a_new_name_with_its_file_and_an_old_one_after_it(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def record_sync(descriptor: int) -> None:
        steps.append("sync directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "sync file")
        fsync(descriptor)

    def record_name(staged: str, target: str) -> None:
        steps.append("name")
        replace(staged, target)

    store.put("other", b"x")
    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_name)
    store.open_writer("a").close()
    store.open_writer("a").close()
    assert steps == ["name", "sync file", "sync directory", "sync file", "name", "sync directory"]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was synced, and "link" when a name was taken, in order."""
    steps: list[str] = []
    fsync, link = os.fsync, os.link

    def record_sync(descriptor: int) -> None:
        steps.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def record_link(source: str, target: str) -> None:
        steps.append("link")
        link(source, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "link", record_link)
    return steps


def write_fleetingly(store: LocalStore) -> None:
    store.put("data/a", b"x", durable=False)
    with store.open_writer("data/b/c", durable=False) as writer:
        writer.write(b"x")


def test_required_objects_are_durable_before_the_name_is_given(root: Path, store: LocalStore, steps: list[str]) -> None:
    write_fleetingly(store)
    assert steps == []
    assert store.put_if_absent("v/1", b"x", after=["data/a", "data/b/c"]) is PutOutcome.CREATED

    before, after = steps[: steps.index("link")], steps[steps.index("link") + 1 :]
    (staged,) = (path for path in before if TEMPORARY_PREFIX in path)
    beneath = {str(root / path) for path in ("data", "data/a", "data/b", "data/b/c")}
    assert set(before) == {staged, str(root), str(root.parent), *beneath}
    assert after == [str(root / "v")]


def test_both_callbacks_run_while_the_store_waits_for_the_disk(store: LocalStore, steps: list[str]) -> None:
    at: list[int] = []

    def prepare() -> bool:
        assert not store.exists("v/1")
        at.append(len(steps))
        return True

    def follow_up() -> None:
        assert store.exists("v/1")
        at.append(len(steps))

    write_fleetingly(store)
    store.put_if_absent_with_callbacks("v/1", b"x", after=["data/a"], prepare=prepare, follow_up=follow_up)
    assert at == [0, steps.index("link") + 1]  # before the syncs of either side


@pytest.mark.parametrize("step", ["prepare", "follow_up"])
def test_an_error_of_a_callback_is_raised_after_the_syncs_ended(
    root: Path, store: LocalStore, steps: list[str], step: str
) -> None:
    def fail() -> bool:
        raise ZeroDivisionError

    prepare, follow_up = (fail if step == name else lambda: True for name in ("prepare", "follow_up"))
    with pytest.raises(ZeroDivisionError):
        store.put_if_absent_with_callbacks("v/1", b"x", prepare=prepare, follow_up=follow_up)
    assert store.exists("v/1") is (step == "follow_up")
    assert list(store.list_temporary()) == []
    assert (steps[-1] == str(root / "v")) is (step == "follow_up")


def test_put_if_absent_of_an_existing_name_syncs_nothing(store: LocalStore, steps: list[str]) -> None:
    store.put("v/1", b"x", durable=False)
    write_fleetingly(store)
    assert store.put_if_absent("v/1", b"y", after=["data/a"]) is PutOutcome.EXISTS
    assert steps == []


@pytest.mark.parametrize("lost", ["data/a", "data/b/c", "data/b", "data"])
def test_a_late_sync_that_fails_refuses_the_name(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    write_fleetingly(store)
    fsync = os.fsync

    def fail_on_one(descriptor: int) -> None:
        if os.path.realpath(f"/proc/self/fd/{descriptor}") == str(root / lost):
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail_on_one)
    with pytest.raises(WriteRefused, match="Input/output error"):
        store.put_if_absent("v/1", b"x", after=["data/a", "data/b/c"])
    assert not store.exists("v/1")
    assert list(store.list_temporary()) == []


def test_a_missing_required_object_refuses_the_name(store: LocalStore) -> None:
    with pytest.raises(WriteRefused, match="No such file"):
        store.put_if_absent("v/1", b"x", after=["data/a"])
    assert list(store.list()) == list(store.list_temporary()) == []


def test_a_long_file_is_durable_when_it_is_closed(root: Path, store: LocalStore, steps: list[str]) -> None:
    with store.open_writer("long", durable=False) as writer:
        writer.write(bytes(5 << 20))
    assert str(root / "long") in steps


def test_many_objects_are_made_durable_at_once(root: Path, store: LocalStore, steps: list[str]) -> None:
    paths = [f"data/{number}" for number in range(70)]
    for path in paths:
        store.put(path, b"x", durable=False)
    store.make_durable(*paths)
    assert {*steps} == {str(root.parent), str(root), str(root / "data"), *(str(root / path) for path in paths)}
    with pytest.raises(ObjectNotFound):
        store.make_durable("data/1", "none")


def test_a_directory_made_by_a_put_without_sync_is_synced_with_the_first_durable_one(
    root: Path, store: LocalStore, steps: list[str]
) -> None:
    store.put("a/b", b"x", durable=False)
    assert steps == []
    store.put("a/c", b"x")
    assert set(steps[1:]) == {str(root.parent), str(root), str(root / "a")}
    steps.clear()
    store.put("a/d", b"x")
    assert steps[1:] == [str(root / "a")]


def test_a_directory_that_was_removed_and_made_again_is_synced_again(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a/b/c", b"x")
    store.delete("a/b/c")
    assert not (root / "a" / "b").exists()
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.path.realpath(f"/proc/self/fd/{descriptor}")))
    store.put("a/b/c", b"x")
    assert str(root / "a") in synced


def test_long_writes_keep_no_reserved_space_beyond_the_file(root: Path, store: LocalStore) -> None:
    with store.open_writer("a") as writer:
        writer.write(b"head")
        writer.write(bytes(1 << 20))
        writer.write(b"tail")
    assert store.get("a").to_pybytes() == b"head" + bytes(1 << 20) + b"tail"
    assert (root / "a").stat().st_blocks * 512 < (1 << 20) + (64 << 10)


def test_a_full_disk_is_reported_before_the_write(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(local_writer, "reserve_space", full)
    with pytest.raises(StoreError, match=r"cannot write .*/a: No space left"), store.open_writer("a") as writer:
        writer.write(bytes(1 << 20))
    assert list(store.list("")) == []


def test_a_long_file_is_on_its_way_to_the_disk_before_it_is_closed(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[int, int]] = []
    monkeypatch.setattr(local_writer, "start_writeback", lambda descriptor, start, size: started.append((start, size)))
    piece = bytes(3 << 20)
    with store.open_writer("a") as writer:
        for _ in range(5):
            writer.write(piece)
    assert started == [(0, 6 << 20), (6 << 20, 6 << 20)]
    assert store.size("a") == 15 << 20


def test_a_put_without_durability_syncs_nothing(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("a", b"x")
    monkeypatch.setattr(os, "fsync", fail(errno.EIO))
    store.put("a", b"y", durable=False)
    assert store.get("a").to_pybytes() == b"y"

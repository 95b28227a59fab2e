"""A watched directory tells every name that came or went before a seal, or that it cannot be sure."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lance_ops.store import LocalStore, MemoryStore
from lance_ops.store.local import directory_watch

pytestmark = pytest.mark.usefixtures("watched")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    (made / "there").write_bytes(b"1")
    return made


@pytest.fixture
def watched(folder: Path) -> None:
    with LocalStore(str(folder)).watch_directory("") as names:
        if names() is None:
            pytest.skip("this file system or kernel has no watches")


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda folder: (folder / "new").touch(), frozenset({"new"})),
        (lambda folder: (folder / "new").mkdir(), frozenset({"new"})),
        (lambda folder: (folder / "new").symlink_to("there"), frozenset({"new"})),
        (lambda folder: (folder / "new").hardlink_to(folder / "there"), frozenset({"new"})),
        (lambda folder: (folder / "there").unlink(), frozenset({"there"})),
        (lambda folder: (folder / "there").rename(folder / "new"), frozenset({"there", "new"})),
        (lambda folder: (folder / "there").rename(folder.parent / "elsewhere"), frozenset({"there"})),
        (lambda folder: (folder.parent / "watched before").touch(), frozenset()),
        (lambda folder: (folder / "there").write_bytes(b"2"), frozenset()),
    ],
    ids=["file", "directory", "symlink", "link", "gone", "renamed", "moved away", "elsewhere", "written"],
)
def test_names_that_come_or_go_are_told(folder: Path, change: Callable[[Path], object], names: frozenset[str]) -> None:
    with LocalStore(str(folder.parent)).watch_directory("folder") as changed:
        assert changed() == frozenset()
        change(folder)
        assert changed() == names
        assert changed() == names


def test_a_name_that_came_and_went_is_told(folder: Path) -> None:
    with LocalStore(str(folder)).watch_directory("") as changed:
        (folder / "new").touch()
        (folder / "new").unlink()
        assert changed() == frozenset({"new"})


def test_a_change_of_another_process_before_a_seal_is_always_told(folder: Path) -> None:
    store = LocalStore(str(folder))
    for number in range(20):
        with store.watch_directory("") as changed:
            subprocess.run(["touch", str(folder / f"n{number}")], check=True)
            assert store.seal_directory("") is not None
            assert changed() == frozenset({f"n{number}"})


def test_two_watches_at_once_are_told_the_same_and_a_later_one_nothing_of_it(folder: Path) -> None:
    store = LocalStore(str(folder))
    with store.watch_directory("") as first, store.watch_directory("") as second:
        (folder / "new").touch()
        assert first() == second() == frozenset({"new"})
    with store.watch_directory("") as third:
        assert third() == frozenset()


class _CountingLibc:
    def __init__(self, libc: Any) -> None:
        self._libc = libc
        self.made = 0

    def __getattr__(self, name: str) -> Any:
        self.made += name == "inotify_init1"
        return getattr(self._libc, name)


def test_an_instance_is_used_again_and_few_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instances = directory_watch._Instances()
    libc = _CountingLibc(instances._libc)
    monkeypatch.setattr(instances, "_libc", libc)
    monkeypatch.setattr(directory_watch, "_INSTANCES", instances)
    store = LocalStore(str(folder))
    for _ in range(20):
        with store.watch_directory("") as changed:
            (folder / "new").touch()
            (folder / "new").unlink()
            assert changed() == frozenset({"new"})
    assert libc.made == 1

    with ExitStack() as stack:
        for _ in range(8):
            assert stack.enter_context(store.watch_directory(""))() == frozenset()
    assert libc.made == 8
    assert len(instances._idle) == directory_watch._MOST_IDLE
    for instance in instances._idle:
        os.close(instance)


@pytest.mark.parametrize("away", [shutil.rmtree, lambda folder: folder.rename(folder.parent / "moved")])
def test_a_directory_that_is_removed_or_moved_is_not_told_of(folder: Path, away: Callable[[Path], object]) -> None:
    store = LocalStore(str(folder.parent))
    with store.watch_directory("folder") as changed:
        away(folder)
        folder.mkdir()
        (folder / "new").touch()
        assert changed() is None
    with store.watch_directory("folder") as changed:
        assert changed() == frozenset()


def test_a_full_queue_means_that_notes_may_be_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(folder))
    overflow = directory_watch._EVENT.pack(-1, 0x4000, 0, 0)
    with store.watch_directory("") as changed:
        (folder / "new").touch()
        with monkeypatch.context() as patch:
            patch.setattr(os, "read", lambda *_: overflow)
            assert changed() is None
        assert changed() is None


def test_nothing_is_told_where_changes_could_be_missed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(store: LocalStore | MemoryStore, directory: str = "") -> frozenset[str] | None:
        with store.watch_directory(directory) as changed:
            return changed()

    store = LocalStore(str(folder))
    assert told(store) == frozenset()
    assert told(store, "none") is told(store, "there") is told(MemoryStore()) is None
    with monkeypatch.context() as patch:
        patch.setenv("LANCE_OPS_DISABLE", "watches")
        assert told(store) is None
    with monkeypatch.context() as patch:
        patch.setattr(directory_watch, "_CHANGED_HERE_ONLY", frozenset())  # as on a network file system
        assert told(store) is None
    proc = LocalStore("/proc")
    assert told(proc) is None
    with monkeypatch.context() as patch:
        patch.setattr(directory_watch._INSTANCES, "_libc", None)  # as on another system
        assert told(store) is None


def test_a_forked_child_does_not_take_its_parents_notes(folder: Path) -> None:
    store = LocalStore(str(folder))
    with store.watch_directory(""):
        pass
    assert directory_watch._INSTANCES._idle
    child = os.fork()
    if not child:
        os._exit(len(directory_watch._INSTANCES._idle))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert directory_watch._INSTANCES._idle

"""Many files are synced by one call for their file system, and each is asked for its own errors."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lance_ops.core.errors import WriteRefused
from lance_ops.store import LocalStore, PutOutcome
from lance_ops.store.local import begin_fsync, file_system_sync, syncing

NUM_FILES = 200


class System:
    """The calls of the system that the trick uses: counted, and failing where a test says so."""

    def __init__(self) -> None:
        self.num_syncfs = 0
        self.asked: list[str] = []
        self.syncfs_answer = 0
        self.lost = ""
        """The name of a file whose bytes did not reach the disk."""
        self.refusal = 0
        """The error of every question about a file; 0 if they are answered."""

    def syncfs(self, descriptor: int) -> int:
        self.num_syncfs += 1
        return self.syncfs_answer

    def sync_file_range(self, descriptor: int, start: int, size: int, flags: int) -> int:
        assert (start, size, flags) == (0, 0, 1)
        self.asked.append(path_of(descriptor).name)
        return -1 if self.refusal or self.asked[-1] == self.lost else 0

    def get_errno(self) -> int:
        return self.refusal or errno.EIO


def path_of(descriptor: int) -> Path:
    """Return the path of an open file."""
    return Path(os.readlink(f"/proc/self/fd/{descriptor}"))


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    """A system where the trick is used from 100 files on."""
    found = System()
    monkeypatch.setattr(syncing, "_LEAST_FOR_SYNCFS", 100)
    monkeypatch.setattr(file_system_sync, "_libc", lambda: found)
    monkeypatch.setattr(file_system_sync, "file_system_type", lambda descriptor: 0xEF53)
    monkeypatch.setattr(file_system_sync, "ctypes", SimpleNamespace(get_errno=found.get_errno))
    return found


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each call for single files was given."""
    counts: list[int] = []

    def begin(descriptors: Sequence[int]) -> Callable[[], None]:
        counts.append(len(descriptors))
        return begin_fsync.begin_fsync(descriptors)

    monkeypatch.setattr(syncing, "begin_fsync", begin)
    return counts


def commit(store: LocalStore, num_files: int) -> PutOutcome:
    """Write files and create an object after them."""
    names = [f"data/{number}" for number in range(num_files)]
    for name in names:
        store.put(name, b"x", durable=False)
    return store.put_if_absent("v/1", b"x", after=names)


def test_many_files_take_one_sync_of_their_file_system(store: LocalStore, system: System, synced: list[int]) -> None:
    assert commit(store, NUM_FILES) is PutOutcome.CREATED
    assert system.num_syncfs == 1
    assert {str(number) for number in range(64, NUM_FILES)} <= set(system.asked)
    assert {"data", "root"} <= set(system.asked)
    assert synced == [64, 1]  # the first ones, while the caller goes on, and in the end the directory of the new name


def test_few_files_are_synced_by_themselves(store: LocalStore, system: System, synced: list[int]) -> None:
    commit(store, 90)
    assert system.num_syncfs == 0
    assert sum(synced) > 90


@pytest.mark.parametrize("cause", ["switch", "file system", "no call", "failure"])
def test_where_the_file_system_is_not_synced_every_file_is(
    store: LocalStore, system: System, synced: list[int], cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    match cause:
        case "switch":
            monkeypatch.setenv("LANCE_OPS_DISABLE", "syncfs")
        case "file system":
            monkeypatch.setattr(file_system_sync, "file_system_type", lambda descriptor: 0x6969)  # NFS
        case "no call":
            monkeypatch.setattr(file_system_sync, "_libc", lambda: None)
        case _:
            system.syncfs_answer = -1
    assert commit(store, NUM_FILES) is PutOutcome.CREATED
    assert system.asked == []
    assert sum(synced) > NUM_FILES


def test_a_file_whose_bytes_were_lost_refuses_the_commit(store: LocalStore, system: System) -> None:
    system.lost = "150"
    with pytest.raises(WriteRefused, match=os.strerror(errno.EIO)):
        commit(store, NUM_FILES)
    assert not store.exists("v/1")


@pytest.mark.parametrize("refusal", [errno.ENOSYS, errno.EPERM, errno.EINVAL], ids=errno.errorcode.get)
def test_files_that_the_system_does_not_let_us_ask_are_synced_by_themselves(
    store: LocalStore, system: System, synced: list[int], refusal: int
) -> None:
    system.refusal = refusal
    assert commit(store, NUM_FILES) is PutOutcome.CREATED
    assert system.num_syncfs == 1
    assert sum(synced) > NUM_FILES


def test_files_on_another_file_system_are_synced_by_themselves_if_it_has_something_to_sync(
    tmp_path: Path, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_OPS_DISABLE", "aio")  # so that `os.fsync` syncs each file
    here, there = ([tmp_path / place / str(number) for number in range(100)] for place in ("here", "there"))
    for path in (*here, *there):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    fstat, synced = os.fstat, set[Path]()

    def status(descriptor: int) -> Any:
        is_there = path_of(descriptor).parent.name == "there"
        return SimpleNamespace(st_dev=-1) if is_there else fstat(descriptor)

    def sync(descriptor: int) -> None:
        synced.add(path_of(descriptor))
        if path_of(descriptor).parent.name == "there":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(os, "fstat", status)
    monkeypatch.setattr(os, "fsync", sync)
    syncing.sync(map(str, (*here, *there)))
    assert system.asked == [path.name for path in here[64:]]
    assert synced == {*here[:64], here[64], *there}  # the first ones, one to flush the disk's cache, and the others


def test_a_disk_whose_cache_is_not_flushed_fails_the_sync(
    tmp_path: Path, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        assert system.num_syncfs == 1
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        file_system_sync.sync_together([str(tmp_path)])
    assert system.asked == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux syncs one file system by a call")
def test_the_real_calls_sync_files_and_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANCE_OPS_DISABLE", raising=False)
    monkeypatch.setattr(file_system_sync, "file_system_type", lambda descriptor: 0xEF53)  # whatever holds `tmp_path`
    paths = [str(tmp_path / str(number)) for number in range(10)]
    for path in paths:
        Path(path).write_bytes(b"x")
    assert file_system_sync.sync_together([*paths, str(tmp_path)]) == []
    with pytest.raises(FileNotFoundError):
        file_system_sync.sync_together([str(tmp_path), str(tmp_path / "absent")])

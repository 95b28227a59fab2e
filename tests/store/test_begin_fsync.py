"""Several files are synced at once, by the kernel or in threads."""

from __future__ import annotations

import ctypes
import errno
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lance_ops.store.local import aio
from lance_ops.store.local import begin_fsync as room
from lance_ops.store.local.begin_fsync import MOST_AT_ONCE, begin_fsync


@pytest.fixture(params=["kernel", "threads"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    kernel = aio._KernelAio()
    if request.param == "threads":
        monkeypatch.setenv("LANCE_OPS_DISABLE", "aio")
    elif kernel._take_context() is None:
        pytest.skip("this system has no asynchronous I/O for us")
    monkeypatch.setattr(room, "KERNEL_AIO", kernel)
    return str(request.param)


def sync(descriptors: list[int]) -> None:
    begin_fsync(descriptors)()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[int]]:
    paths = [tmp_path / str(number) for number in range(100)]
    for path in paths:
        path.write_bytes(b"x")
    descriptors = [os.open(path, os.O_RDONLY) for path in (*paths, tmp_path)]
    yield descriptors
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.parametrize("number", [0, 1, 2, MOST_AT_ONCE])
def test_any_number_of_files_and_directories_is_synced(
    how: str, files: list[int], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    begin_fsync(files[-number:] if number else [])()
    assert len(synced) == (number if how == "threads" else 0)


@pytest.mark.parametrize("bad", [0, 3, 9])
def test_a_failed_sync_raises_and_the_next_sync_succeeds(how: str, files: list[int], bad: int) -> None:
    broken = [*files[:10]]
    broken[bad] = 1 << 20
    with pytest.raises(OSError, match="Bad file descriptor"):
        begin_fsync(broken)()
    sync(files[:9])


def test_a_failed_sync_in_a_thread_is_raised_after_the_others_ended(
    files: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, ended = aio._KernelAio(), []
    kernel._call = None

    def fsync(descriptor: int) -> None:
        if descriptor == files[0]:
            raise OSError(errno.EIO, "broken")
        time.sleep(0.01)
        ended.append(descriptor)

    monkeypatch.setattr(room, "KERNEL_AIO", kernel)
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="broken"):
        begin_fsync(files[:20])()
    assert sorted(ended) == sorted(files[1:20])


def test_the_caller_continues_while_files_are_synced(files: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, may_end, ended = aio._KernelAio(), threading.Event(), []
    kernel._call = None

    def fsync(descriptor: int) -> None:
        assert may_end.wait(60)
        ended.append(descriptor)

    monkeypatch.setattr(room, "KERNEL_AIO", kernel)
    monkeypatch.setattr(os, "fsync", fsync)
    finish = begin_fsync(files[:2])
    assert ended == []
    may_end.set()
    finish()
    assert sorted(ended) == sorted(files[:2])


def test_a_file_with_nothing_to_sync_raises_nothing(how: str, files: list[int]) -> None:
    reading, writing = os.pipe()
    try:
        begin_fsync([files[0], reading, files[1]])()
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_failure_that_the_kernel_reports_is_raised(
    files: list[int], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = aio._KernelAio()
    monkeypatch.setattr(room, "KERNEL_AIO", kernel)
    monkeypatch.setattr(kernel, "_take_context", lambda: aio._Context(ctypes.c_ulong(0)))
    monkeypatch.setattr(kernel, "_call", lambda *_: 3)
    monkeypatch.setattr(kernel, "_wait", lambda *_: [0, -code, -errno.EINVAL])
    with pytest.raises(OSError, match=os.strerror(code)):
        begin_fsync(files[:3])()


def test_threads_do_not_wait_for_each_others_files(how: str, files: list[int]) -> None:
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(sync, files[start : start + 9]) for start in range(80)]:
            done.result(timeout=60)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # forking beside threads is what is tested
def test_a_forked_child_syncs_by_itself(how: str, files: list[int]) -> None:
    sync(files[:9])
    child = multiprocessing.get_context("fork").Process(target=sync, args=(files[:9],))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    sync(files[:9])

"""The local store's links, temporary names, directories and clock."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from lance_ops.core.errors import ObjectNotFound, StoreError, UnsafePath, UnsafeStore, WriteRefused
from lance_ops.store import LocalStore, PutOutcome
from lance_ops.store.local import local_store
from tests.store.on_disk import fail, files_in

pytestmark = pytest.mark.usefixtures("one_sync_after_the_other")


def test_a_relative_root_is_made_absolute_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = LocalStore("here/./data")
    monkeypatch.chdir("/")
    store.put("a", b"x")
    assert (tmp_path / "here" / "data" / "a").read_bytes() == b"x"
    assert store.uri == str(tmp_path / "here" / "data")


@pytest.mark.parametrize("target", ["outside/secret", "outside"])
def test_a_symbolic_link_out_of_the_root_is_refused(root: Path, store: LocalStore, tmp_path: Path, target: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    root.mkdir()
    (root / "link").symlink_to(tmp_path / target)
    path = "link" if target.endswith("secret") else "link/secret"

    uses: list[Callable[[], object]] = [
        lambda: store.get(path),
        lambda: store.size(path),
        lambda: store.exists(path),
        lambda: store.put(path, b"x"),
        lambda: store.put_if_absent(path, b"x"),
        lambda: store.open_writer(path),
        lambda: store.delete(path),
        lambda: store.delete_several([path]),
        lambda: store.copy(path, "copy"),
        lambda: store.child(path),
    ]
    for use in uses:
        with pytest.raises(UnsafePath, match="symbolic link"):
            use()
    assert (tmp_path / "outside" / "secret").read_bytes() == b"secret"
    assert files_in(tmp_path / "outside") == ["secret"]


@pytest.mark.parametrize("target", ["secret", "."])
def test_list_refuses_a_link_out_of_the_root(root: Path, store: LocalStore, tmp_path: Path, target: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    store.put("data/a", b"x")
    (root / "data" / "out").symlink_to(tmp_path / target)
    with pytest.raises(UnsafePath, match="data/out"):
        list(store.list())


def test_links_inside_the_root_and_a_root_that_is_a_link_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    store = LocalStore(str(tmp_path / "root"))
    store.put("data/a", b"x")
    (tmp_path / "real" / "alias").symlink_to("data/a")
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "real")

    assert store.get("alias").to_pybytes() == b"x"
    assert sorted(found.path for found in store.list()) == ["alias", "data/a"]


def test_a_dangling_link_is_judged_by_where_it_points(root: Path, store: LocalStore, tmp_path: Path) -> None:
    root.mkdir()
    (root / "in").symlink_to(root / "nothing")
    (root / "out").symlink_to(tmp_path / "nothing")
    assert not store.exists("in")
    with pytest.raises(UnsafePath):
        store.exists("out")


def test_only_regular_files_are_objects(root: Path, store: LocalStore) -> None:
    root.mkdir()
    os.mkfifo(root / "pipe")
    assert not store.exists("pipe")
    with pytest.raises(ObjectNotFound):
        store.get("pipe")
    assert list(store.list()) == []


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_without_hard_links_an_exclusive_rename_commits(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "link", fail(code))

    assert store.put_if_absent("v/1", b"first") is PutOutcome.CREATED
    assert store.put_if_absent("v/1", b"second") is PutOutcome.EXISTS
    assert store.get("v/1").to_pybytes() == b"first"
    assert list(store.list_temporary()) == []


def test_without_links_and_exclusive_rename_nothing_is_committed(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kernel:
        def renameat2(self, *_: object) -> int:
            return -1

    monkeypatch.setattr(os, "link", fail(errno.EPERM))
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Kernel())
    monkeypatch.setattr(ctypes, "get_errno", lambda: errno.EINVAL)

    with pytest.raises(UnsafeStore, match="neither hard links nor an exclusive rename"):
        store.put_if_absent("v/1", b"x")
    assert list(store.list()) == list(store.list_temporary()) == []


@pytest.mark.parametrize("code", [errno.EEXIST, errno.EIO, errno.ETIMEDOUT])
def test_a_link_that_was_made_is_a_commit_whatever_the_network_answered(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    link = os.link

    def link_and_fail(source: str, target: str) -> None:
        link(source, target)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link_and_fail)
    assert store.put_if_absent("v/1", b"x") is PutOutcome.CREATED


def test_a_link_that_fails_for_another_reason_is_unknown_and_cleans_up(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", fail(errno.EIO))
    with pytest.raises(StoreError) as caught:
        store.put_if_absent("v/1", b"x")
    assert not isinstance(caught.value, WriteRefused)
    assert list(store.list_temporary()) == []


def test_a_missing_file_that_must_be_durable_first_is_named(store: LocalStore) -> None:
    store.put("data/a", b"x")
    missing = f"{store.root}/data/b"
    with pytest.raises(WriteRefused, match=f"cannot write .*/v/1: {missing}, which must be durable .*No such file"):
        store.put_if_absent("v/1", b"x", after=["data/a", "data/b"])
    with pytest.raises(ObjectNotFound, match="no object at [^,]*/data/b$"):
        store.make_durable("data/a", "data/b")


def test_a_failure_before_the_name_is_given_is_a_refusal(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", fail(errno.ENOSPC))
    with pytest.raises(WriteRefused, match="No space left"):
        store.put_if_absent("v/1", b"x")
    monkeypatch.undo()
    assert list(store.list()) == list(store.list_temporary()) == []


def test_a_hint_is_written_in_place_unless_that_would_cut_it_short(root: Path, store: LocalStore) -> None:
    store.put_hint("v/hint", b"9")
    first = (root / "v" / "hint").stat().st_ino
    store.put_hint("v/hint", b"10")
    assert (root / "v" / "hint").stat().st_ino == first
    whole = store.get("v/hint")
    store.put_hint("v/hint", b"1")
    assert (root / "v" / "hint").stat().st_ino != first
    assert whole.to_pybytes() == b"10"
    assert list(store.list_temporary()) == []


def test_writing_a_hint_with_two_links_changes_only_its_own_name(root: Path, store: LocalStore) -> None:
    store.put_hint("hint", b"1")
    os.link(root / "hint", root / "copy")
    store.put_hint("hint", b"2")
    assert (root / "copy").read_bytes() == b"1"
    assert (root / "hint").read_bytes() == b"2"


@pytest.mark.parametrize("broken", ["replace", "fsync", "open"])
def test_a_failed_put_keeps_the_old_object_and_leaves_no_file(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    store.put("a", b"old")
    monkeypatch.setattr(os, broken, fail(errno.EIO))
    with pytest.raises(StoreError, match="Input/output error") as caught:
        store.put("a", b"new")
    monkeypatch.undo()

    assert str(root / "a") in str(caught.value)
    assert files_in(root) == ["a"]
    assert store.get("a").to_pybytes() == b"old"


@pytest.mark.parametrize("broken", ["replace", "fsync"])
def test_a_writer_that_fails_to_close_leaves_no_file(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    writer = store.open_writer("a")
    writer.write(b"x")
    monkeypatch.setattr(os, broken, fail(errno.ENOSPC))
    with pytest.raises(StoreError, match="No space left"):
        writer.close()
    monkeypatch.undo()
    assert files_in(root) == []


def test_a_name_where_a_directory_must_be_is_a_store_error(store: LocalStore) -> None:
    store.put("a", b"x")
    for write in (lambda: store.put("a/b", b"y"), lambda: store.open_writer("a/b")):
        with pytest.raises(StoreError):
            write()
    with pytest.raises(WriteRefused):
        store.put_if_absent("a/b", b"y")


def test_deleting_the_last_file_removes_empty_directories_except_those_that_others_made_in_the_root(
    root: Path, store: LocalStore
) -> None:
    (root / "_indices").mkdir(parents=True)
    store.put("_indices/uuid/part/page.lance", b"x")
    store.put("_indices/uuid/other.lance", b"x")
    store.delete("_indices/uuid/part/page.lance")
    assert (root / "_indices" / "uuid").exists()
    assert not (root / "_indices" / "uuid" / "part").exists()

    store.delete("_indices/uuid/other.lance")
    assert (root / "_indices").exists()
    assert not (root / "_indices" / "uuid").exists()

    store.put("data/part.lance", b"x")
    store.delete("data/part.lance")
    assert not (root / "data").exists() and root.exists()


def _write_piecewise(store: LocalStore) -> None:
    with store.open_writer("a/b/c") as writer:
        writer.write(b"x")


WRITES: dict[str, Callable[[LocalStore], object]] = {
    "put": lambda store: store.put("a/b/c", b"x"),
    "put if absent": lambda store: store.put_if_absent("a/b/c", b"x"),
    "writer": _write_piecewise,
    "child": lambda store: store.child("a/b").put("c", b"x"),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_fails_leaves_no_directory_that_it_made(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for call in ("replace", "link"):
        monkeypatch.setattr(os, call, fail(errno.EIO))
    with pytest.raises(StoreError):
        WRITES[name](store)
    assert not root.exists() and root.parent.exists()


def test_deleting_several_files_looks_at_each_directory_once_and_names_those_that_stay(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [f"data/{number}" for number in range(9)]
    for path in paths:
        store.put(path, b"x")
    located, unlink, locate = list[str](), os.unlink, LocalStore._locate

    def locating(self: LocalStore, path: str) -> str:
        located.append(path)
        return locate(self, path)

    def refusing(path: str) -> None:
        if path.endswith("/3"):
            raise PermissionError(errno.EPERM, "not permitted", path)
        unlink(path)

    monkeypatch.setattr(LocalStore, "_locate", locating)
    monkeypatch.setattr(os, "unlink", refusing)
    assert store.delete_several(paths) == {"data/3"}
    assert located == ["data"]
    assert files_in(root) == ["data/3"]


def test_a_directory_pruned_while_a_file_is_made_in_it_is_made_again(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir
    pruned: list[str] = []

    def mkdir_then_prune(path: str) -> None:
        mkdir(path)
        if path.endswith("b") and not pruned:
            pruned.append(path)
            os.rmdir(path)

    monkeypatch.setattr(os, "mkdir", mkdir_then_prune)
    store.put("a/b/c", b"x")
    assert pruned
    assert store.get("a/b/c").to_pybytes() == b"x"


def test_files_are_readable_by_others_as_the_umask_says(root: Path, store: LocalStore) -> None:
    mask = os.umask(0o022)
    try:
        store.put("a", b"x")
        store.put_if_absent("b", b"x")
    finally:
        os.umask(mask)
    assert {(root / name).stat().st_mode & 0o777 for name in ("a", "b")} == {0o644}


def test_the_time_is_known_where_nothing_can_be_written(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    assert store.now() > before
    assert not root.exists()
    store.put("a", b"x")
    assert store.now() > before
    assert files_in(root) == ["a"]
    monkeypatch.setattr(os, "open", fail(errno.EROFS))
    assert store.now() > before


class PausedClock(datetime):
    """A clock that the test sets, and that jumps by `pause` while a file is made."""

    moment = datetime(2026, 7, 1, tzinfo=UTC)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a plain datetime, as callers want
        return cls.moment.astimezone(tz)


@pytest.mark.parametrize("pause", [timedelta(0), timedelta(milliseconds=30), timedelta(minutes=1)], ids=str)
@pytest.mark.parametrize("tick", [timedelta(0), timedelta(milliseconds=10)], ids=["fine", "coarse"])
def test_now_is_never_before_an_earlier_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: timedelta, tick: timedelta
) -> None:
    stamps: list[datetime] = []

    def stamped(descriptor: int) -> os.stat_result:
        stamps.append(PausedClock.moment - tick)
        seconds = stamps[-1].timestamp()
        PausedClock.moment += pause  # another process runs before this one looks at the clock again
        return os.stat_result((*os.stat(tmp_path)[:7], seconds, seconds, seconds))

    monkeypatch.setattr(PausedClock, "moment", PausedClock.moment)
    monkeypatch.setattr(local_store, "datetime", PausedClock)
    monkeypatch.setattr(os, "fstat", stamped)
    done = PausedClock.moment
    assert LocalStore(str(tmp_path)).now() == done + pause
    assert stamps == [done - tick]


def test_now_is_the_time_of_the_stamps_of_this_machine(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    before = datetime.now(UTC)
    moments = [store.now() for _ in range(20)]
    assert before <= moments[0] and moments == sorted(moments) and moments[-1] <= datetime.now(UTC)


def test_the_time_of_a_network_mount_is_the_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    an_hour_ago = int(os.stat(tmp_path).st_mtime) - 3600
    late = os.stat_result((*os.stat(tmp_path)[:7], an_hour_ago, an_hour_ago, an_hour_ago))
    monkeypatch.setattr(os, "fstat", lambda descriptor: late)
    assert LocalStore(str(tmp_path)).now() == datetime.fromtimestamp(an_hour_ago, UTC)


def test_a_long_part_is_read_by_several_calls_until_the_file_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_store, "_READ_AT_ONCE", 100)
    asked: list[int] = []
    preadv = os.preadv

    def noting(file: int, buffers: list[memoryview], position: int) -> int:
        asked.append(len(buffers[0]))
        return preadv(file, buffers, position)

    monkeypatch.setattr(os, "preadv", noting)
    store, data = LocalStore(str(tmp_path)), bytes(range(250))
    store.put("d/a", data)
    out = bytearray(400)
    assert store.read_parts(["d/a"], [[(0, 260, 0), (10, 0, 0), (50, 100, 260)]], memoryview(out)) == [250, 0, 100]
    assert out[:250] == data and out[260:360] == data[50:150]
    assert asked == [100, 100, 60, 0, 100]

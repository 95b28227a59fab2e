"""What only files have: links, temporary names, fsync, directories."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lance_ops.core.errors import ObjectNotFound, StoreError, UnsafePath, UnsafeStore, WriteRefused
from lance_ops.store import LocalStore, PutOutcome, local, syncing
from lance_ops.store.maps import MAPS, MapCache
from lance_ops.store.paths import TEMPORARY_PREFIX


@pytest.fixture(autouse=True)
def _one_sync_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `os.fsync` see, and fail, each sync of several."""

    def begin(descriptors: Sequence[int]) -> Callable[[], None]:
        def finish() -> None:
            for descriptor in descriptors:
                os.fsync(descriptor)

        return finish

    monkeypatch.setattr(syncing, "begin_fsync", begin)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(str(root))


def fail(code: int) -> Callable[..., None]:
    def raise_it(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return raise_it


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_relative_root_is_made_absolute_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = LocalStore("here/./data")
    monkeypatch.chdir("/")
    store.put("a", b"x")
    assert (tmp_path / "here" / "data" / "a").read_bytes() == b"x"
    assert store.uri == str(tmp_path / "here" / "data")


def test_reads_are_mapped_and_slices_share_memory(store: LocalStore) -> None:
    store.put("a", b"0123456789" * 20_000)
    whole = store.get("a")
    (part,) = store.get_ranges("a", [(5, 9)])
    assert part.address == whole.address + 5
    assert store.get("a").address == whole.address


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


def test_what_is_no_regular_file_is_no_object(root: Path, store: LocalStore) -> None:
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
def test_a_link_that_was_made_counts_whatever_the_network_answered(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    link = os.link

    def link_and_fail(source: str, target: str) -> None:
        link(source, target)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link_and_fail)
    assert store.put_if_absent("v/1", b"x") is PutOutcome.CREATED


def test_a_link_that_fails_otherwise_is_in_doubt_and_cleans_up(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", fail(errno.EIO))
    with pytest.raises(StoreError) as caught:
        store.put_if_absent("v/1", b"x")
    assert not isinstance(caught.value, WriteRefused)
    assert list(store.list_temporary()) == []


def test_a_failure_before_the_name_is_taken_is_a_refusal(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", fail(errno.ENOSPC))
    with pytest.raises(WriteRefused, match="No space left"):
        store.put_if_absent("v/1", b"x")
    monkeypatch.undo()
    assert list(store.list()) == list(store.list_temporary()) == []


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
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, write: Callable[[LocalStore], object]
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    write(store)

    assert {str(root.parent), str(root), str(root / "a"), str(root / "a" / "b")} <= set(synced)
    assert any(os.path.basename(path).startswith(TEMPORARY_PREFIX) or path == str(root / "a/b/c") for path in synced)


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


def test_what_a_name_comes_after_is_durable_before_it_is_taken(root: Path, store: LocalStore, steps: list[str]) -> None:
    write_fleetingly(store)
    assert steps == []
    assert store.put_if_absent("v/1", b"x", after=["data/a", "data/b/c"]) is PutOutcome.CREATED

    before, after = steps[: steps.index("link")], steps[steps.index("link") + 1 :]
    (staged,) = (path for path in before if TEMPORARY_PREFIX in path)
    beneath = {str(root / path) for path in ("data", "data/a", "data/b", "data/b/c")}
    assert set(before) == {staged, str(root), str(root.parent), *beneath}
    assert after == [str(root / "v")]


def test_both_steps_around_a_name_are_taken_while_the_disk_is_waited_for(store: LocalStore, steps: list[str]) -> None:
    at: list[int] = []

    def prepare() -> bool:
        assert not store.exists("v/1")
        at.append(len(steps))
        return True

    def follow_up() -> None:
        assert store.exists("v/1")
        at.append(len(steps))

    write_fleetingly(store)
    store.put_if_absent_between("v/1", b"x", after=["data/a"], prepare=prepare, follow_up=follow_up)
    assert at == [0, steps.index("link") + 1]  # before the syncs of either side


@pytest.mark.parametrize("step", ["prepare", "follow_up"])
def test_what_a_step_around_a_name_raises_is_raised_when_the_syncs_have_ended(
    root: Path, store: LocalStore, steps: list[str], step: str
) -> None:
    def fail() -> bool:
        raise ZeroDivisionError

    prepare, follow_up = (fail if step == name else lambda: True for name in ("prepare", "follow_up"))
    with pytest.raises(ZeroDivisionError):
        store.put_if_absent_between("v/1", b"x", prepare=prepare, follow_up=follow_up)
    assert store.exists("v/1") is (step == "follow_up")
    assert list(store.list_temporary()) == []
    assert (steps[-1] == str(root / "v")) is (step == "follow_up")


def test_a_name_that_is_taken_waits_for_nothing(store: LocalStore, steps: list[str]) -> None:
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


def test_no_name_comes_after_what_is_not_there(store: LocalStore) -> None:
    with pytest.raises(WriteRefused, match="No such file"):
        store.put_if_absent("v/1", b"x", after=["data/a"])
    assert list(store.list()) == list(store.list_temporary()) == []


def test_a_long_file_is_durable_when_it_is_closed_whatever_comes_after(
    root: Path, store: LocalStore, steps: list[str]
) -> None:
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


def test_a_directory_made_by_a_fleeting_put_is_synced_with_the_first_durable_one(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    store.put("a/b", b"x", durable=False)
    assert synced == []
    store.put("a/c", b"x")
    assert set(synced[1:]) == {str(root.parent), str(root), str(root / "a")}
    synced.clear()
    store.put("a/d", b"x")
    assert synced[1:] == [str(root / "a")]


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


def test_long_writes_take_their_room_at_once_and_leave_none_behind(root: Path, store: LocalStore) -> None:
    with store.open_writer("a") as writer:
        writer.write(b"head")
        writer.write(bytes(1 << 20))
        writer.write(b"tail")
    assert store.get("a").to_pybytes() == b"head" + bytes(1 << 20) + b"tail"
    assert (root / "a").stat().st_blocks * 512 < (1 << 20) + (64 << 10)


def test_a_disk_without_room_is_told_before_it_is_written_to(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(local, "reserve", full)
    with pytest.raises(StoreError, match=r"cannot write .*/a: No space left"), store.open_writer("a") as writer:
        writer.write(bytes(1 << 20))
    assert list(store.list("")) == []


def test_a_long_file_is_on_its_way_to_the_disk_before_it_is_closed(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[int, int]] = []
    monkeypatch.setattr(local, "start_writeback", lambda descriptor, start, size: started.append((start, size)))
    piece = bytes(3 << 20)
    with store.open_writer("a") as writer:
        for _ in range(5):
            writer.write(piece)
    assert started == [(0, 6 << 20), (6 << 20, 6 << 20)]
    assert store.size("a") == 15 << 20


def test_put_that_need_not_be_durable_syncs_nothing(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("a", b"x")
    monkeypatch.setattr(os, "fsync", fail(errno.EIO))
    store.put("a", b"y", durable=False)
    assert store.get("a").to_pybytes() == b"y"


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


def test_a_hint_that_shares_its_file_with_another_name_leaves_that_one_alone(root: Path, store: LocalStore) -> None:
    store.put_hint("hint", b"1")
    os.link(root / "hint", root / "copy")
    store.put_hint("hint", b"2")
    assert (root / "copy").read_bytes() == b"1"
    assert (root / "hint").read_bytes() == b"2"


@pytest.mark.parametrize("broken", ["replace", "fsync", "open"])
def test_a_failed_put_keeps_the_old_object_and_leaves_nothing(
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
def test_a_writer_that_cannot_close_leaves_nothing(
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


def test_deleting_the_last_file_removes_empty_directories_except_those_of_the_root(
    root: Path, store: LocalStore
) -> None:
    store.put("_indices/uuid/part/page.lance", b"x")
    store.put("_indices/uuid/other.lance", b"x")
    store.delete("_indices/uuid/part/page.lance")
    assert (root / "_indices" / "uuid").exists()
    assert not (root / "_indices" / "uuid" / "part").exists()

    store.delete("_indices/uuid/other.lance")
    assert (root / "_indices").exists()
    assert not (root / "_indices" / "uuid").exists()


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


def test_a_deleted_file_is_let_go_of(root: Path, store: LocalStore) -> None:
    store.put("a", b"x" * 100_000)
    store.get("a")
    store.delete("a")
    with open("/proc/self/maps") as maps:
        assert str(root / "a") not in maps.read()


def test_the_cache_of_maps_is_bounded_and_notices_replaced_files(tmp_path: Path) -> None:
    cache = MapCache(capacity=2)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(name.encode() * 200_000)
    first = cache.get(str(tmp_path / "a"))
    assert cache.get(str(tmp_path / "a")).address == first.address
    for name in ("b", "c"):
        cache.get(str(tmp_path / name))
    (tmp_path / "new").write_bytes(b"A" * 200_000)
    os.replace(tmp_path / "new", tmp_path / "a")

    assert cache.get(str(tmp_path / "a")).to_pybytes() == b"A" * 200_000
    assert first.to_pybytes() == b"a" * 200_000
    with pytest.raises(FileNotFoundError):
        cache.get(str(tmp_path))
    MAPS.reset()


def test_a_short_file_is_read_and_no_map_of_it_kept(root: Path, store: LocalStore) -> None:
    for name, size in (("short", 128 << 10), ("long", (128 << 10) + 1)):
        store.put(name, b"x" * size)
        assert store.get(name).to_pybytes() == b"x" * size
    with open("/proc/self/maps") as maps:
        mapped = maps.read()
    assert str(root / "long") in mapped
    assert str(root / "short") not in mapped
    MAPS.reset()


@pytest.mark.parametrize("given", [b"who", b"whole and more"])
def test_a_file_is_read_whole_though_the_system_gives_less_or_it_has_grown(
    given: bytes, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", b"whole")
    monkeypatch.setattr(os, "read", lambda descriptor, size: given[:size])
    assert store.get("a").to_pybytes() == b"whole"


def test_mapped_files_hold_no_descriptors(store: LocalStore) -> None:
    before = len(os.listdir("/proc/self/fd"))
    buffers = []
    for index in range(50):
        store.put(str(index), b"x" * 50_000, durable=False)
        buffers.append(store.get(str(index)))
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_time_is_told_even_where_nothing_can_be_written(
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


def test_what_was_done_is_never_later_than_now(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for _ in range(100):
        done = datetime.now(UTC)
        assert done <= store.now()


def test_another_machine_s_time_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    an_hour_ago = int(os.stat(tmp_path).st_mtime) - 3600
    late = os.stat_result((*os.stat(tmp_path)[:7], an_hour_ago, an_hour_ago, an_hour_ago))
    monkeypatch.setattr(os, "fstat", lambda descriptor: late)
    assert LocalStore(str(tmp_path)).now() == datetime.fromtimestamp(an_hour_ago, UTC)

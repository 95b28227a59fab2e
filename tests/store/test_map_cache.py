"""Files are read through maps, which are shared, bounded in number, and dropped when a file is deleted."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lance_ops.store import LocalStore
from lance_ops.store.local import memory_map_cache
from lance_ops.store.local.memory_map_cache import MAPPED_FILES, MapCache
from tests.store.conftest import open_files

LONGEST_TICK_NS = memory_map_cache._longest_tick_ns  # before the session's fixture replaces it


def test_reads_are_mapped_and_slices_share_memory(store: LocalStore) -> None:
    store.put("a", b"0123456789" * 20_000)
    whole = store.get("a")
    (part,) = store.get_ranges("a", [(5, 9)])
    assert part.address == whole.address + 5
    assert store.get("a").address == whole.address


def test_a_deleted_file_is_unmapped(root: Path, store: LocalStore) -> None:
    store.put("a", b"x" * 100_000)
    store.get("a")
    store.delete("a")
    with open("/proc/self/maps") as maps:
        assert str(root / "a") not in maps.read()


def test_the_cache_of_maps_is_bounded_and_notices_replaced_files(tmp_path: Path) -> None:
    cache = MapCache(capacity=2)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(name.encode() * 200_000)
    first = cache.get(str(tmp_path / "a")).buffer
    assert cache.get(str(tmp_path / "a")).buffer.address == first.address
    for name in ("b", "c"):
        cache.get(str(tmp_path / name))
    (tmp_path / "new").write_bytes(b"A" * 200_000)
    os.replace(tmp_path / "new", tmp_path / "a")

    assert cache.get(str(tmp_path / "a")).buffer.to_pybytes() == b"A" * 200_000
    assert first.to_pybytes() == b"a" * 200_000
    with pytest.raises(FileNotFoundError):
        cache.get(str(tmp_path))
    MAPPED_FILES.reset()


def test_a_short_file_is_read_and_no_map_of_it_kept(root: Path, store: LocalStore) -> None:
    for name, size in (("short", 128 << 10), ("long", (128 << 10) + 1)):
        store.put(name, b"x" * size)
        assert store.get(name).to_pybytes() == b"x" * size
    with open("/proc/self/maps") as maps:
        mapped = maps.read()
    assert str(root / "long") in mapped
    assert str(root / "short") not in mapped
    MAPPED_FILES.reset()


@pytest.mark.parametrize("given", [b"who", b"whole and more"])
def test_a_short_file_is_read_whole_after_a_partial_read_or_growth(
    given: bytes, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", b"whole")
    monkeypatch.setattr(os, "read", lambda descriptor, size: given[:size])
    assert store.get("a").to_pybytes() == b"whole"


def test_mapped_files_hold_no_descriptors(root: Path, store: LocalStore) -> None:
    buffers = []
    for index in range(50):
        store.put(str(index), b"x" * 200_000, durable=False)
        buffers.append(store.get(str(index)))
    assert open_files(root) == []


@pytest.mark.parametrize(
    ("changed_ns", "age_ns", "is_local", "is_known"),
    [
        pytest.param(5 * 10**18 + 3, 50 * 10**6, True, False, id="a fine clock may stand still for some milliseconds"),
        pytest.param(5 * 10**18 + 3, 150 * 10**6, True, True, id="not for longer"),
        pytest.param(5 * 10**18 + 3, 1_900 * 10**6, False, False, id="the clock of a server runs behind"),
        pytest.param(5 * 10**18 + 3, 2_100 * 10**6, False, True, id="but by no more than two seconds"),
        pytest.param(5 * 10**18, 1_900 * 10**6, True, False, id="a clock of seconds stands still for two"),
        pytest.param(5 * 10**18, 2_100 * 10**6, True, True, id="and for no more"),
        pytest.param(5 * 10**18 + 3, -(10**9), False, False, id="the clock of a server runs ahead"),
    ],
)
def test_a_file_is_known_by_its_times_once_their_clock_has_ticked(
    monkeypatch: pytest.MonkeyPatch, changed_ns: int, age_ns: int, is_local: bool, is_known: bool
) -> None:
    status = SimpleNamespace(st_dev=1, st_ino=2, st_size=3, st_mtime_ns=4, st_ctime_ns=changed_ns)
    monkeypatch.setattr(memory_map_cache, "time", SimpleNamespace(time_ns=lambda: changed_ns + age_ns))
    monkeypatch.setattr(memory_map_cache, "_longest_tick_ns", LONGEST_TICK_NS)
    monkeypatch.setattr(memory_map_cache, "_is_local", {1: is_local}.__getitem__)
    identity = memory_map_cache._settled_identity(cast("os.stat_result", status))
    assert identity == ((1, 2, 3, 4, changed_ns) if is_known else None)


def test_a_file_system_is_local_if_the_mounts_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "36 35 98:0 / / rw,noatime master:1 - ext4 /dev/root rw\n"
        "40 36 0:50 / /mnt/nfs rw shared:2 - nfs4 server:/export rw,vers=4.2\n"
        "41 36 0:51 / /tmp rw - tmpfs tmpfs rw\n"
    )
    monkeypatch.setattr(memory_map_cache, "_MOUNTS", str(mounts))
    is_local = memory_map_cache._is_local.__wrapped__
    devices = [os.makedev(98, 0), os.makedev(0, 50), os.makedev(0, 51), os.makedev(0, 52)]
    assert [is_local(device) for device in devices] == [True, False, True, False]
    mounts.unlink()
    assert not is_local(devices[0])

"""A sealed directory keeps its stamp until a name comes or goes, and nothing else has that stamp."""

from __future__ import annotations

import os
import random
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lance_ops.core.errors import UnsafePath
from lance_ops.store import LocalStore


def seal(folder: str) -> str | None:
    return LocalStore(folder).seal_directory("")


def stamp(folder: str) -> str | None:
    return LocalStore(folder).directory_stamp("")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    (made / "there").write_bytes(b"1")
    return made


def _come_and_go(folder: Path) -> None:
    (folder / "new").touch()
    (folder / "new").unlink()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "new").touch(),
        lambda folder: (folder / "new").mkdir(),
        lambda folder: (folder / "new").symlink_to("there"),
        lambda folder: (folder / "new").hardlink_to(folder / "there"),
        lambda folder: (folder / "there").unlink(),
        lambda folder: (folder / "there").rename(folder / "new"),
        lambda folder: (folder / "there").rename(folder.parent / "elsewhere"),
        _come_and_go,
    ],
    ids=["file", "directory", "symlink", "link", "gone", "renamed", "moved away", "came and went"],
)
def test_a_name_that_comes_or_goes_at_once_breaks_a_seal(folder: Path, change: Callable[[Path], object]) -> None:
    sealed = seal(str(folder))
    assert sealed is not None
    assert stamp(str(folder)) == sealed
    change(folder)
    assert stamp(str(folder)) != sealed


def test_a_change_of_no_name_keeps_the_seal(folder: Path) -> None:
    sealed = seal(str(folder))
    (folder / "there").write_bytes(b"2")
    assert (list(folder.iterdir()), (folder / "there").read_bytes()) == ([folder / "there"], b"2")
    assert stamp(str(folder)) == sealed


def test_a_sealed_directory_is_not_sealed_again(folder: Path) -> None:
    sealed = seal(str(folder))
    assert seal(str(folder)) is None
    assert stamp(str(folder)) == sealed


def test_two_states_never_have_the_same_seal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbits", random.Random(5).getrandbits)
    seals = []
    for _ in range(200):  # far more than there are ticks meanwhile
        _come_and_go(folder)
        seals.append(seal(str(folder)))
    assert None not in seals
    assert len(set(seals)) == 200


def test_a_copied_or_restored_directory_has_another_stamp(folder: Path) -> None:
    sealed = seal(str(folder))
    copy = folder.parent / "copy"
    shutil.copytree(folder, copy)
    assert copy.stat().st_mtime_ns == folder.stat().st_mtime_ns
    assert stamp(str(copy)) != sealed

    (folder / "later").touch()
    shutil.copytree(copy, folder, dirs_exist_ok=True)
    assert copy.stat().st_mtime_ns == folder.stat().st_mtime_ns
    assert stamp(str(folder)) != sealed


def test_a_clock_that_is_set_back_restores_no_seal(folder: Path) -> None:
    sealed = seal(str(folder))
    status = folder.stat()
    (folder / "later").touch()
    os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert folder.stat().st_mtime_ns == status.st_mtime_ns
    assert stamp(str(folder)) != sealed


def test_a_directory_whose_times_may_not_be_set_has_no_seal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    before = stamp(str(folder))
    monkeypatch.setattr(os, "utime", refuse)
    assert seal(str(folder)) is None
    assert stamp(str(folder)) == before


@pytest.mark.parametrize("grain_ns", [10**9, 10**7], ids=["seconds", "hundredths"])
def test_a_file_system_that_keeps_times_less_finely_has_no_seals(
    folder: Path, grain_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exactly = os.utime

    def coarsely(path: int, ns: tuple[int, int]) -> None:
        exactly(path, ns=(ns[0], ns[1] - ns[1] % grain_ns))

    monkeypatch.setattr(os, "utime", coarsely)
    assert seal(str(folder)) is None


def test_a_missing_directory_has_neither_stamp_nor_seal(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put("file", b"")
    assert [store.directory_stamp(name) or store.seal_directory(name) for name in ("none", "none/deeper", "file")] == [
        None
    ] * 3


def test_a_link_to_a_directory_is_followed_within_the_root_and_refused_out_of_it(folder: Path) -> None:
    store = LocalStore(str(folder.parent))
    outside = LocalStore(str(folder))
    (folder.parent / "link").symlink_to(folder)
    (folder / "out").symlink_to(folder.parent)

    sealed = store.seal_directory("link")
    assert sealed is not None
    assert store.directory_stamp("link") == store.directory_stamp("folder") == sealed
    assert sorted(store.list_names("link")) == ["out", "there"]
    for ask in (outside.directory_stamp, outside.seal_directory, outside.list_names):
        for path in ("out", "out/folder"):
            with pytest.raises(UnsafePath, match="symbolic link"):
                ask(path)

"""A process removes an empty directory only if it made the directory itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_ops.store import LocalStore
from lance_ops.store.local.made_directories import MadeDirectories


def test_directories_that_were_made_are_removed_up_to_one_that_was_there(tmp_path: Path) -> None:
    made = MadeDirectories()
    made.make(str(tmp_path / "a"))
    made.make(str(tmp_path / "a" / "b"))
    made.remove(str(tmp_path / "a" / "b"))
    assert list(tmp_path.iterdir()) == []
    assert tmp_path.is_dir()


def test_a_directory_that_another_process_made_first_is_not_removed(tmp_path: Path) -> None:
    made = MadeDirectories()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    made.make(str(theirs))
    made.remove(str(theirs))
    assert theirs.is_dir()


def test_a_directory_that_could_not_be_made_is_not_removed_later(tmp_path: Path) -> None:
    made = MadeDirectories()
    inner = tmp_path / "missing" / "inner"
    with pytest.raises(FileNotFoundError):
        made.make(str(inner))
    inner.mkdir(parents=True)
    made.remove(str(inner))
    assert inner.is_dir()


def test_a_directory_that_is_not_empty_stays(tmp_path: Path) -> None:
    made = MadeDirectories()
    made.make(str(tmp_path / "a"))
    (tmp_path / "a" / "file").touch()
    made.remove(str(tmp_path / "a"))
    assert (tmp_path / "a" / "file").exists()


def test_a_writer_goes_on_when_a_delete_removes_the_directories_that_it_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = MadeDirectories.make
    removals: list[str] = []

    def make_beside_a_delete(made: MadeDirectories, directory: str) -> None:
        if directory.endswith("inner") and len(removals) < 3:
            removals.append(directory)
            (tmp_path / "outer").rmdir()
        make(made, directory)

    monkeypatch.setattr(MadeDirectories, "make", make_beside_a_delete)
    LocalStore(str(tmp_path)).put("outer/inner/file", b"bytes")
    assert len(removals) == 3
    assert (tmp_path / "outer" / "inner" / "file").read_bytes() == b"bytes"

"""File sessions read, write and list the same files as the reference's, and refuse what leaves their directory."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import file
from lance_ops.errors import InvalidInput, ObjectNotFound, StoreError, UnsafePath, UnsupportedFeature

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

REFERENCE = import_module("lance.file")
TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


def fill(session: Any, source: Path) -> None:
    source.write_bytes(b"0123456789")
    with session.open_writer("first.lance") as writer:
        writer.write_batch(TABLE)
    with session.open_writer(
        "deep/er/second.lance", schema=TABLE.schema, version="2.0", keep_original_array=True, max_page_bytes=8
    ) as writer:
        writer.write_batch(TABLE)
    session.upload_file(str(source), "deep/copy")
    session.upload_file(source, "gone")
    session.delete_file("gone")


def shown(session: Any, tmp_path: Path) -> list[object]:
    """Return the answers of every question that a session takes."""
    second = session.open_reader("deep/er/second.lance", ["b"])
    metadata = second.metadata()
    session.download_file("deep/copy", str(tmp_path / "down"))
    listings = [session.list_with_delimiter(path) for path in (None, "", "deep", "deep/", "deep/er", "none")]
    return [
        session.open_reader("first.lance").read_all().to_table(),
        second.read_all().to_table(),
        (metadata.major_version, metadata.minor_version),
        [sorted(session.list(path)) for path in (None, "deep", "deep/", "none")],
        [(sorted(each.common_prefixes), sorted(each.objects)) for each in listings],
        [session.contains(path) for path in ("first.lance", "deep", "deep/copy", "dee", "gone")],
        [session.read_range("deep/copy", start, size) for start, size in ((0, 10), (3, 4), (5, 0))],
        (tmp_path / "down").read_bytes(),
    ]


@pytest.mark.parametrize("writer", [file, REFERENCE], ids=["ours", "theirs"])
def test_either_library_finds_the_files_of_the_other(tmp_path: Path, writer: Any) -> None:
    fill(writer.LanceFileSession(str(tmp_path / "files")), tmp_path / "source")
    ours = shown(file.LanceFileSession(tmp_path / "files"), tmp_path)
    assert ours == shown(REFERENCE.LanceFileSession(str(tmp_path / "files")), tmp_path)
    assert ours[2:5] == [
        (0, 3),
        [
            ["deep/copy", "deep/er/second.lance", "first.lance"],
            *[["deep/copy", "deep/er/second.lance"]] * 2,
            [],
        ],
        [
            *[(["deep"], ["first.lance"])] * 2,
            *[(["deep/er"], ["deep/copy"])] * 2,
            ([], ["deep/er/second.lance"]),
            ([], []),
        ],
    ]


def test_a_missing_file_is_an_error_of_the_system_and_leaves_no_copy(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "four").write_bytes(b"four")
    for library in (file, REFERENCE):
        session = library.LanceFileSession(str(tmp_path / "files"))
        calls: list[tuple[Callable[..., object], tuple[object, ...]]] = [
            (session.read_range, ("none", 0, 1)),
            (session.read_range, ("four", 2, 3)),
            (session.delete_file, ("none",)),
            (session.download_file, ("none", str(tmp_path / "down"))),
            (session.upload_file, (str(tmp_path / "none"), "up")),
        ]
        for call, arguments in calls:
            with pytest.raises(OSError, match="none|four|whole buffer"):
                call(*arguments)
        assert session.list() == ["four"]
    ours = file.LanceFileSession(tmp_path / "files")
    with pytest.raises(ObjectNotFound, match="none"):
        ours.download_file("none", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
    with pytest.raises(StoreError, match="3 bytes at 2 of a file of 4 bytes"):
        ours.read_range("four", 2, 3)
    with pytest.raises(InvalidInput, match="negative"):
        ours.read_range("four", -1, 3)


def test_no_path_leaves_the_directory(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    session = file.LanceFileSession(tmp_path / "files")
    for path in ("../secret", str(tmp_path / "secret"), "a/../../secret"):
        for refused in (session.contains, session.delete_file, session.open_reader, session.list):
            with pytest.raises(UnsafePath):
                refused(path)
        with pytest.raises(UnsafePath):
            session.read_range(path, 0, 1)
        with pytest.raises(UnsafePath):
            session.upload_file(tmp_path / "secret", path)
    with pytest.raises(UnsupportedFeature, match="namespace"):
        file.LanceFileSession(tmp_path, namespace_client=object())


def test_a_dataset_opens_a_session_on_its_own_files(tmp_path: Path) -> None:
    ours = lance_ops.write_dataset(TABLE, tmp_path / "t").new_file_session()
    theirs = lance.dataset(str(tmp_path / "t")).new_file_session()
    assert ours.list() == sorted(theirs.list())
    (data,) = ours.list("data")
    assert ours.open_reader(data).read_all().to_table() == theirs.open_reader(data).read_all().to_table() == TABLE

"""Handles that open the same bytes share what one of them has decoded, and nothing else."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import ChecksumMismatch, CorruptFile
from lance_ops.file import FileReader, container_file
from lance_ops.file import reader as file_reader
from lance_ops.file.page_reading import FileSource
from lance_ops.file.v2_1 import DECODED_FILES, V21File, decoded_files
from lance_ops.file.v2_1 import reader as v2_1_reader
from lance_ops.file.v2_1.decoded_files import DecodedFiles
from lance_ops.store import READ_WHOLE_BYTES, LocalStore
from lance_ops.store.local import memory_map_cache
from tests.growth.instructions import count_instructions

ROWS = {"short": 1_000, "mapped": 40_000}


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Treat every file as one that was written long ago."""
    monkeypatch.setattr(memory_map_cache, "_longest_tick_ns", lambda status: -(1 << 62))
    DECODED_FILES.reset()
    yield
    DECODED_FILES.reset()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the columns and pages whose descriptions are decoded."""
    made: Counter[str] = Counter()
    for module, name in ((container_file, "decode_column"), (v2_1_reader, "open_page")):
        call: Callable[..., object] = getattr(module, name)

        def counting(*arguments: object, call: Callable[..., object] = call, name: str = name) -> object:
            made[name] += 1
            return call(*arguments)

        monkeypatch.setattr(module, name, counting)
    return made


def _write(path: Path, rows: int, first: int = 0) -> Path:
    """Write a table of random numbers, and return its data file."""
    numbers = np.random.default_rng(first).integers(1 << 61, 1 << 62, (2, rows))  # every such file is as long
    uri = lance_ops.write_dataset(pa.table({"a": numbers[0], "b": numbers[1]}), path).uri
    (file,) = (Path(uri) / "data").iterdir()
    return file


def _open(file: Path, *, verifies: bool = False) -> FileReader:
    return FileReader(LocalStore(str(file.parent)), file.name, verifies=verifies)


@pytest.mark.parametrize("length", ROWS)
def test_a_file_is_decoded_by_the_first_handle_alone(tmp_path: Path, length: str, decoded: Counter[str]) -> None:
    file = _write(tmp_path / "t.lance", ROWS[length])
    assert (file.stat().st_size > READ_WHOLE_BYTES) == (length == "mapped")
    first = _open(file).read()
    assert decoded == {"decode_column": 2, "open_page": 2}
    assert _open(file).read(stop=7) == first[:7]
    assert _open(file).take(None, [3, 5, 900]) == first.take([3, 5, 900])
    assert decoded == {"decode_column": 2, "open_page": 2}


@pytest.mark.parametrize("verifies", [False, True])
def test_another_handle_reads_neither_the_end_of_a_file_nor_its_checksums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verifies: bool
) -> None:
    file = _write(tmp_path / "t.lance", ROWS["mapped"])
    first = _open(file, verifies=verifies)
    assert first.has_checksums
    rows = first.read()
    for refused in ("find_table", "_read_version"):
        monkeypatch.delattr(file_reader, refused)
    monkeypatch.setattr(FileSource, "with_tail", None)
    for stop in (7, ROWS["mapped"]):
        other = _open(file, verifies=verifies)
        assert other.has_checksums
        assert other.read(stop=stop) == rows[:stop]
    with pytest.raises(CorruptFile, match=f"has {file.stat().st_size} bytes where 9 are recorded"):
        FileReader(LocalStore(str(file.parent)), file.name, 9, verifies=verifies)


def test_a_verifying_handle_that_finds_a_file_decoded_finds_damaged_pages_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _write(tmp_path / "t.lance", ROWS["mapped"])
    monkeypatch.setattr(memory_map_cache, "_settled_identity", lambda status: status.st_ino)  # a disk rots unseen
    _open(file, verifies=True).read()
    with file.open("r+b") as opened:
        opened.write(b"rotten")
    monkeypatch.delattr(file_reader, "find_table")
    with pytest.raises(ChecksumMismatch, match="t.lance"):
        _open(file, verifies=True).read()


def test_a_young_file_is_decoded_by_every_handle(
    tmp_path: Path, decoded: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _write(tmp_path / "t.lance", 10)
    monkeypatch.setattr(memory_map_cache, "_longest_tick_ns", lambda status: 1 << 62)
    for handles in (1, 2):
        _open(file).read()
        assert decoded["decode_column"] == 2 * handles
    monkeypatch.setattr(memory_map_cache, "_longest_tick_ns", lambda status: -(1 << 62))
    monkeypatch.setenv("LANCE_OPS_DISABLE", "decoded-files")
    _open(file).read()
    assert decoded["decode_column"] == 6


@pytest.mark.parametrize("length", ROWS)
def test_bytes_that_are_written_in_place_are_decoded_even_if_the_time_is_set_back(
    tmp_path: Path, length: str, decoded: Counter[str]
) -> None:
    file, other = (_write(tmp_path / f"{first}.lance", ROWS[length], first) for first in (0, 5))
    wanted = _open(other).read()
    assert _open(file).read() != wanted
    before = file.stat()
    with file.open("r+b") as opened:
        opened.write(other.read_bytes())
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # the next tick of the file system's clock
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_mtime_ns, file.stat().st_size) == (before.st_mtime_ns, before.st_size)
    assert _open(file).read() == wanted
    assert decoded["decode_column"] == 6


def test_a_damage_is_found_by_every_handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise CorruptFile("f", "columns", "they overlap")

    file = _write(tmp_path / "t.lance", 10)
    monkeypatch.setattr(container_file, "check_no_overlap", refuse)
    reader = _open(file)
    for handle in (reader, reader, _open(file)):
        with pytest.raises(CorruptFile, match="they overlap"):
            handle.read()


def test_a_reader_that_verifies_shares_only_what_was_verified(tmp_path: Path, decoded: Counter[str]) -> None:
    file = _write(tmp_path / "t.lance", 10)
    reader = _open(file)
    reader.read()
    for pages in (4, 6):
        reader.verifying().read()  # the metadata was verified when the file was opened, but not the pages' indices
        assert decoded == {"decode_column": 2, "open_page": pages}
    for _ in range(2):
        _open(file, verifies=True).read()
        assert decoded == {"decode_column": 4, "open_page": 8}


def test_the_files_that_were_opened_last_are_kept_as_far_as_they_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _write(tmp_path / "t.lance", 10)
    source, tail = FileSource.with_tail(LocalStore(str(file.parent)), file.name, None, 1 << 14)
    size = decoded_files._LEAST_BYTES + V21File(source, tail).decoded_bytes
    files = DecodedFiles(capacity_bytes=2 * size + 1)

    def opens_anew(name: str | None) -> bool:
        known = {id(kept._columns) for kept in files._files.values()}
        return id(files.open(name, source, tail)._columns) not in known

    assert [opens_anew(name) for name in ("a", "b", "a", "c", "a", "b")] == [True, True, False, True, False, True]
    assert [opens_anew(None), opens_anew(None)] == [True, True]
    monkeypatch.setattr(decoded_files, "_LEAST_BYTES", 2 * size)
    assert [DecodedFiles(2 * size).open("a", source, tail).num_rows, files._num_bytes] == [10, 2 * size]


@pytest.mark.parametrize("columns", [2, 40])
def test_columns_that_are_read_together_are_found_by_the_first_handle_alone(
    tmp_path: Path, columns: int, decoded: Counter[str]
) -> None:
    table = pa.table({f"c{number}": np.arange(50) * number for number in range(columns)})
    (file,) = (Path(lance_ops.write_dataset(table, tmp_path / "t.lance").uri) / "data").iterdir()
    assert _open(file).read() == table
    before = Counter(decoded)
    assert _open(file).take(None, [3, 49]) == table.take([3, 49])
    assert decoded == before


def test_a_row_by_its_key_takes_less_work_by_another_handle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(40_000), "v": range(40_000)}), tmp_path / "t.lance")
    dataset.create_scalar_index("id", "BTREE")

    def look_up() -> None:
        assert lance_ops.dataset(dataset.uri).to_table(filter="id = 777")["v"].to_pylist() == [777]

    counts = {}
    for disabled in ("decoded-files", ""):
        monkeypatch.setenv("LANCE_OPS_DISABLE", disabled)
        look_up()
        counts[disabled] = min(count_instructions(look_up) for _ in range(3))
    assert counts[""] < 0.85 * counts["decoded-files"], counts

"""Files of short fragments are opened together, with the answer of files opened one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import ChecksumMismatch, CorruptFile, ObjectNotFound
from lance_ops.reading import joined_fragments, scan_execution
from tests.reading.short_fragments import FRAGMENTS, ROWS, SCANS, made, table


@pytest.mark.parametrize("options", SCANS, ids=str)
def test_files_that_are_opened_together_give_the_batches_of_files_opened_one_by_one(
    tmp_path: Path,
    options: dict[str, Any],
    groups: list[int],
    alike: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = made(tmp_path / "t")
    dataset.delete("id % 10 = 3")
    alike.clear()
    found = list(dataset.scanner(**options).to_batches())
    assert alike and min(alike) >= FRAGMENTS - 2
    monkeypatch.setattr(joined_fragments, "open_alike", lambda *_: None)
    groups.clear()
    assert found == list(dataset.scanner(**options).to_batches())
    assert groups


def test_all_cores_read_groups_of_about_the_same_size(
    tmp_path: Path, groups: list[int], alike: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"n": np.arange(150)})
    dataset = lance_ops.write_dataset(rows, tmp_path / "t", max_rows_per_file=1)
    for cores, expected in ((1, 3 * [50]), (2, [38, 38, 38, 36]), (4, [38, 38, 38, 36]), (16, [*8 * [17], 14])):
        monkeypatch.setattr(scan_execution, "available_cores", partial(int, cores))
        assert dataset.to_table() == rows
        assert sorted(groups, reverse=True) == sorted(alike, reverse=True) == expected
        groups.clear()
        alike.clear()


def test_fragments_of_different_lengths_are_opened_together(tmp_path: Path, alike: list[int]) -> None:
    rows = table()
    for first, last in ((0, 7), (7, 90), (90, 91), (91, 240)):
        lance_ops.write_dataset(rows[first:last], tmp_path / "t", mode="append" if first else "create")
    dataset = lance_ops.dataset(tmp_path / "t")
    assert dataset.to_table().combine_chunks() == rows.combine_chunks()
    found = dataset.to_table(filter="id % 3 = 1", columns=["text", "number"])
    assert found["text"].to_pylist() == rows["text"].to_pylist()[1::3]
    assert alike == [4, 4]


def _link_the_second(files: list[Path]) -> None:
    files[1].rename(files[1].with_suffix(".moved"))
    files[1].symlink_to(files[1].with_suffix(".moved"))


def _lengthen_the_second(files: list[Path]) -> None:
    files[1].write_bytes(files[1].read_bytes() + b"x")


def _remove_the_second(files: list[Path]) -> None:
    files[1].unlink()


def _damage_the_schema_of_the_second(files: list[Path]) -> None:
    data = bytearray(files[1].read_bytes())
    data[data.index(b"text")] ^= 1
    files[1].write_bytes(data)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (_link_the_second, None),
        (_lengthen_the_second, CorruptFile),
        (_remove_the_second, ObjectNotFound),
        (_damage_the_schema_of_the_second, ChecksumMismatch),
    ],
)
def test_what_cannot_be_opened_together_is_opened_one_by_one(
    tmp_path: Path, alike: list[int], change: Callable[[list[Path]], None], error: type[Exception] | None
) -> None:
    rows = table().select(["id", "text"])
    dataset = made(tmp_path / "t", rows)
    files = [tmp_path / "t" / "data" / fragment.files[0].path for fragment in dataset.snapshot.fragments]
    change(files)
    if error is None:
        assert lance_ops.dataset(tmp_path / "t").to_table().combine_chunks() == rows.combine_chunks()
    else:
        with pytest.raises(error, match=files[1].name):
            lance_ops.dataset(tmp_path / "t").to_table()
    assert alike == [0]


@pytest.fixture(params=["short", "long"])
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the files count as short ones, which are read whole, and as long ones."""
    if request.param == "long":
        monkeypatch.setattr("lance_ops.file.alike_files.alike_files.WHOLE_FILE_BYTES", 100)
    return str(request.param)


@pytest.mark.usefixtures("length")
def test_reads_that_verify_pages_open_files_together(tmp_path: Path, alike: list[int]) -> None:
    made(tmp_path / "t")
    dataset = lance_ops.dataset(tmp_path / "t", verify_checksums="always")
    assert dataset.to_table()["id"].to_pylist() == list(range(ROWS))
    assert alike == [FRAGMENTS]


def test_a_damaged_page_is_found_in_each_file_that_is_opened_with_others(
    tmp_path: Path, alike: list[int], length: str
) -> None:
    dataset = made(tmp_path / "t")
    for fragment in dataset.snapshot.fragments:
        path = tmp_path / "t" / "data" / fragment.files[0].path
        intact = path.read_bytes()
        path.write_bytes(bytes([intact[0] ^ 1]) + intact[1:])  # of the first page
        with pytest.raises(ChecksumMismatch, match=path.name):
            lance_ops.dataset(tmp_path / "t").delete("id >= 0")
        path.write_bytes(intact)
    assert alike == [0 if length == "short" else FRAGMENTS] * FRAGMENTS  # pages of long files are verified when read

"""Deletion files that are decoded by the pattern of another one give what each of them gives alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

import lance_ops
from lance_ops.errors import CorruptFile, LanceOpsError
from lance_ops.table import DeletionFile, decode_deletion_vector, decode_deletion_vectors, encode_deletion_vector
from lance_ops.table.fragments import alike_deletion_files


def _encoded(offsets: list[int]) -> tuple[DeletionFile, bytes]:
    return encode_deletion_vector(BitMap(offsets), 1, 7)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the paths of the files that are parsed as Arrow files."""
    paths: list[str] = []

    def recording(file: DeletionFile, data: bytes, physical_rows: int, path: str) -> BitMap:
        paths.append(path)
        return decode_deletion_vector(file, data, physical_rows, path)

    monkeypatch.setattr(alike_deletion_files, "decode_deletion_vector", recording)
    monkeypatch.setattr(alike_deletion_files, "_PATTERNS", {})
    return paths


def test_one_file_of_each_number_of_offsets_is_parsed(parsed: list[str]) -> None:
    rng = np.random.default_rng(3)
    wanted = [sorted(rng.choice(1000, 5 if at % 3 else 40, replace=False).tolist()) for at in range(30)]
    files, data = zip(*map(_encoded, wanted), strict=True)
    paths = [f"file {at}" for at in range(30)]
    assert decode_deletion_vectors(files, data, [1000] * 30, paths) == [BitMap(each) for each in wanted]
    assert parsed == ["file 0", "file 1"]


@pytest.mark.parametrize("count", [1000, 6000])
def test_files_that_do_not_hold_plain_offsets_are_parsed(count: int, parsed: list[str]) -> None:
    wanted = [[*range(first, first + 2 * count, 2)] for first in (0, 1, 2)]
    files, data = zip(*map(_encoded, wanted), strict=True)
    found = decode_deletion_vectors(files, data, [1 << 20] * 3, ["a", "b", "c"])
    assert found == [BitMap(each) for each in wanted]
    assert parsed == ["a", "b", "c"]


def test_a_changed_byte_is_found_as_in_a_file_alone() -> None:
    (first, first_data), (second, intact) = _encoded([1, 5, 9]), _encoded([2, 3, 8])
    files, paths = [first, second], ["first", "second"]
    refused = 0
    for at in range(len(intact)):
        changed = bytearray(intact)
        changed[at] ^= 0x20
        try:
            alone = decode_deletion_vector(second, bytes(changed), 10, "second")
        except LanceOpsError as error:
            refused += 1
            with pytest.raises(type(error), match="second"):
                decode_deletion_vectors(files, [first_data, bytes(changed)], [10, 10], paths)
        else:
            found = decode_deletion_vectors(
                [first, second], [first_data, bytes(changed)], [10, 10], ["first", "second"]
            )
            assert found[1] == alone
    assert refused > 300


def test_offsets_and_counts_are_checked(parsed: list[str]) -> None:
    (first, first_data), (second, data) = _encoded([1, 5, 9]), _encoded([2, 3, 8])
    (three_more, _) = _encoded([1, 2, 3, 4])
    for file, num_rows in ((second, 8), (three_more, 10)):
        with pytest.raises(CorruptFile, match="second"):
            decode_deletion_vectors([first, file], [first_data, data], [10, num_rows], ["first", "second"])


def test_scans_parse_one_deletion_file_of_many(tmp_path: Path, parsed: list[str]) -> None:
    rows = pa.table({"n": np.arange(400)})
    dataset = lance_ops.write_dataset(rows, tmp_path / "t", max_rows_per_file=10)
    dataset.delete("n % 10 = 3")
    live = [number for number in range(400) if number % 10 != 3]
    parsed.clear()
    assert lance_ops.dataset(tmp_path / "t").to_table()["n"].to_pylist() == live
    assert 1 <= len(parsed) <= 2  # two groups may be read at the same time
    parsed.clear()
    assert lance_ops.dataset(tmp_path / "t").to_table(filter="n >= 0")["n"].to_pylist() == live
    assert not parsed
    dataset = lance_ops.dataset(tmp_path / "t")
    victim = dataset.snapshot.fragments[5]
    assert victim.deletion_path is not None
    (tmp_path / "t" / victim.deletion_path).write_bytes(b"x" * 700)
    with pytest.raises(CorruptFile, match=Path(victim.deletion_path).name):
        lance_ops.dataset(tmp_path / "t").to_table()

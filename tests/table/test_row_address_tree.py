"""The bytes of a set of row addresses, and the runs of a bitmap."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_ops.core.errors import CorruptFile
from lance_ops.table.rows import decode_address_tree, encode_address_tree, encode_bitmap, long_runs_in

HIGHEST = 2**32 - 1
NUMBERS = st.sets(st.integers(0, 40) | st.integers(HIGHEST - 20, HIGHEST))


@given(st.dictionaries(st.integers(0, HIGHEST), NUMBERS, max_size=4))
def test_a_set_survives_its_bytes_without_empty_bitmaps(content: dict[int, set[int]]) -> None:
    data = encode_address_tree({high: BitMap(low) for high, low in content.items()})
    found = decode_address_tree(data, "file", "nulls")
    assert found == {high: BitMap(low) for high, low in content.items() if low}
    assert list(found) == sorted(found)


def test_a_size_of_zero_stands_for_every_low_half() -> None:
    assert decode_address_tree(struct.pack("<III", 1, 7, 0), "file", "nulls") == {7: None}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "requires a buffer"),
        (struct.pack("<III", 1, 7, 9), "9 bytes are missing"),
        (struct.pack("<I", 0) + b"x", "1 bytes follow"),
        (struct.pack("<IIIII", 2, 7, 0, 7, 0), "7 comes twice"),
        (struct.pack("<III", 1, 7, 4) + b"none", "not a Roaring bitmap"),
        (struct.pack("<III", 2, 7, 0), "requires a buffer"),
    ],
)
def test_other_bytes_are_refused_by_file_and_place(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptFile, match=rf"^file: nulls.*{reason}"):
        decode_address_tree(data, "file", "nulls")


def test_bytes_of_two_fragments_have_the_reference_s_layout() -> None:
    low = encode_bitmap(BitMap([3, 13]))
    expected = struct.pack("<III", 2, 0, len(low)) + low + struct.pack("<II", 1, len(low)) + low
    assert encode_address_tree({1: BitMap([3, 13]), 0: BitMap([3, 13]), 5: BitMap()}) == expected


@given(NUMBERS, st.integers(1, 12))
def test_runs_have_all_numbers_and_no_other(numbers: set[int], least_rows: int) -> None:
    runs = long_runs_in(BitMap(numbers), least_rows)
    starts = [number for number in sorted(numbers) if number - 1 not in numbers]
    if runs is None:
        assert len(starts) > max(len(numbers) // least_rows, 1)
        return
    assert [start for start, _ in runs] == starts
    assert {number for start, stop in runs for number in range(start, stop)} == numbers
    assert len(runs) <= max(len(numbers) // least_rows, 1)

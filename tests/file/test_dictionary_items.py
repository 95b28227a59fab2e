from __future__ import annotations

import pyarrow as pa
import pytest

from lance_ops.core.errors import ReadTooLarge
from lance_ops.encodings.contract import CorruptValues
from lance_ops.file.arrow_values.dictionary_items import take_items

WORDS = ["a", "", "longer than two words of a machine", "seven b", "schön", "last"]


@pytest.mark.parametrize("item_type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("position_type", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], ids=str)
@pytest.mark.parametrize("items", [WORDS, [None, *WORDS], WORDS[:1]], ids=["no null items", "null items", "one item"])
@pytest.mark.parametrize("nulls", [False, True], ids=["no null", "nulls"])
def test_items_equal_those_that_arrow_takes(
    item_type: pa.DataType, position_type: pa.DataType, items: list[str | None], *, nulls: bool
) -> None:
    dictionary = pa.array(items, pa.string()).cast(item_type)
    numbers = [None if nulls and i % 5 == 0 else i * i % len(items) for i in range(50)]
    positions = pa.array(numbers, position_type)
    for wanted in (positions, positions.slice(3, 20), positions.slice(0, 0)):
        found = take_items(dictionary, wanted, 1000)
        found.validate(full=True)
        assert found.equals(dictionary.take(wanted))


def test_items_may_be_a_slice_of_an_array() -> None:
    dictionary = pa.array(["x" * 50, *WORDS]).slice(1)
    positions = pa.array([5, 0, 2], pa.uint32())
    assert take_items(dictionary, positions, 1000).equals(dictionary.take(positions))


def test_an_empty_dictionary_serves_only_null_positions() -> None:
    nothing = pa.array([], pa.string())
    assert take_items(nothing, pa.nulls(3, pa.uint32()), 0).null_count == 3
    with pytest.raises(CorruptValues, match="beyond the dictionary"):
        take_items(nothing, pa.array([0], pa.uint32()), 0)


def test_too_many_copies_of_a_long_item_are_refused() -> None:
    dictionary = pa.array(["short", "x" * (1 << 20)])
    assert len(take_items(dictionary, pa.array([0] * 1000, pa.uint32()), 100)) == 1000
    with pytest.raises(ReadTooLarge, match="dictionary items"):
        take_items(dictionary, pa.array([1] * 1000, pa.uint32()), 100)

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.errors import ReadTooLarge
from lance_ops.file.arrow_values.reordering import reorder

WORDS = ["", "a", None, "a word", "ü", "x" * 5000, None, "end", ""]


def chunked(arrow_type: pa.DataType, sizes: list[int]) -> pa.ChunkedArray:
    values = pa.array([None if word is None else word.encode() for word in WORDS * 50], pa.binary()).cast(arrow_type)
    ends = np.cumsum(sizes).tolist()
    assert ends[-1] < len(values)
    return pa.chunked_array([values.slice(end - size, size) for end, size in zip(ends, sizes, strict=True)], arrow_type)


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("num_taken", [0, 1, 40, 2000])
def test_byte_strings_of_several_chunks_come_in_the_given_order(arrow_type: pa.DataType, num_taken: int) -> None:
    table = pa.table({"text": chunked(arrow_type, [100, 0, 7, 200]), "number": np.arange(307)})
    positions = np.random.default_rng(3).integers(0, 307, num_taken)
    found = reorder(table, positions)
    found.validate(full=True)
    assert found.equals(table.take(positions))


def test_other_types_and_single_chunks_come_in_the_given_order() -> None:
    lists = pa.chunked_array([[[1], [2, 3]], [None, []]])
    table = pa.table({"text": pa.array(["a", "b", "c", None]), "lists": lists})
    assert reorder(table, np.array([3, 0, 0, 2])).equals(table.take([3, 0, 0, 2]))


def test_more_than_2_gib_of_strings_is_refused_before_memory_is_allocated() -> None:
    table = pa.table({"text": pa.chunked_array([["x" * (1 << 20)], ["y"]])})
    with pytest.raises(ReadTooLarge, match="more than 2 GiB in one array of string"):
        reorder(table, np.zeros(2048, np.int64))

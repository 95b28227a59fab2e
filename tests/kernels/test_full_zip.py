from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only
from tests.kernels import twins


def walk(
    rows: list[bytes], word_bytes: int, bits_def: int, most_def: int, value_bytes: int, length_bytes: int
) -> tuple[list[int], list[bytes]] | None:
    """Walk twice, as readers do: to count, and to write."""
    data = b"".join(rows)
    ends = np.cumsum([len(row) for row in rows]).astype(np.int64)
    starts = ends - np.array([len(row) for row in rows], np.int64)
    given_rows = read_only(np.frombuffer(data, np.uint8)), read_only(starts), read_only(ends)
    shape = word_bytes, bits_def, most_def, value_bytes, length_bytes
    none = np.empty(0, np.int64)
    num_entries, num_values = kernels.walk_entries(*given_rows, *shape, np.empty(0, np.uint32), none, none)
    if num_entries < 0:
        return None
    words, places = np.zeros(num_entries, np.uint32), np.zeros((2, num_values), np.int64)
    counts = kernels.walk_entries(*given_rows, *shape, words, places[0], places[1])
    assert counts == (num_entries, num_values)
    return words.tolist(), [data[start : start + size] for start, size in places.T.tolist()]


@st.composite
def zipped(
    draw: st.DrawFn, word_bytes: int, bits_def: int, most_def: int, value_bytes: int, length_bytes: int
) -> bytes:
    """A row of entries that end where they say."""
    row = b""
    for word in draw(st.lists(st.integers(0, 256**word_bytes - 1), max_size=5)):
        row += word.to_bytes(word_bytes, "little")
        if word % (1 << bits_def) <= most_def:
            size = draw(st.integers(0, 20)) if length_bytes else value_bytes
            row += size.to_bytes(8, "little")[:length_bytes] + b"v" * size
    return row


shapes = st.tuples(
    st.sampled_from([1, 2, 4]), st.integers(0, 8), st.integers(0, 3), st.integers(0, 9), st.sampled_from([0, 4, 8])
)


@given(shapes, st.data())
def test_walking_entries_equals_the_plain_twin(shape: tuple[int, int, int, int, int], data: st.DataObject) -> None:
    rows = data.draw(st.lists(zipped(*shape), max_size=6))
    found = walk(rows, *shape)
    assert found is not None and found == twins.walk_entries(rows, *shape)


@given(shapes, st.lists(st.binary(max_size=40), max_size=4))
def test_walking_any_bytes_equals_the_plain_twin(shape: tuple[int, int, int, int, int], rows: list[bytes]) -> None:
    assert walk(rows, *shape) == twins.walk_entries(rows, *shape)

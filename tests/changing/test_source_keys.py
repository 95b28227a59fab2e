from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.changing.source_keys import SourceKeys, key_hashes
from lance_ops.errors import UnsupportedFeature
from lance_ops.table.rows.key_code_table import NO_CODE

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-3, 3)),
    (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1])),
    (pa.float32(), st.sampled_from([0.0, -0.0, 1.5, float("inf")])),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates(dt.date(1969, 12, 30), dt.date(1970, 1, 2))),
    (pa.timestamp("us"), st.sampled_from([dt.datetime(1960, 1, 1), dt.datetime(2020, 1, 1)])),
    (pa.string(), st.sampled_from(["", "a", "b", "a" * 40, "ü"])),
    (pa.binary(2), st.sampled_from([b"ab", b"\0\0", b"ba"])),
    (pa.decimal128(9, 2), st.sampled_from([Decimal("1.00"), Decimal("-1.00"), Decimal("0.01")])),
]


def codes_of(keys: SourceKeys, columns: list[pa.Array]) -> list[int]:
    positions, found = keys.hits(columns)
    assert (np.diff(positions) > 0).all()
    codes = np.full(len(columns[0]), NO_CODE)
    codes[positions] = found
    return codes.tolist()


@given(st.data(), st.integers(1, 3), st.integers(0, 20), st.integers(0, 20), st.integers(0, 3))
def test_keys_match_exactly_like_equal_tuples(
    data: st.DataObject, width: int, num_source: int, num_target: int, offset: int
) -> None:
    kinds = [data.draw(st.sampled_from(KINDS)) for _ in range(width)]
    source, target = (
        [[data.draw(st.none() | values) for _ in range(count + offset)] for _, values in kinds]
        for count in (num_source, num_target)
    )

    def arrays(columns: list[list[Any]]) -> list[pa.Array]:
        pairs = zip(columns, kinds, strict=True)
        return [pa.array(column, kind).slice(offset) for column, (kind, _) in pairs]

    keys = pickle.loads(pickle.dumps(SourceKeys(arrays(source), [str(i) for i in range(width)])))
    rows = list(zip(*(column[offset:] for column in source), strict=True))
    codes = codes_of(keys, arrays(target))
    assert keys.num_codes == len({row for row in rows if None not in row})
    assert keys.are_distinct == (keys.num_codes == len([row for row in rows if None not in row]))
    for asked, code in zip(zip(*(column[offset:] for column in target), strict=True), codes, strict=True):
        expected = [] if None in asked else [position for position, row in enumerate(rows) if row == asked]
        assert (code == NO_CODE) == (not expected)
        if expected:
            positions, found = keys.rows_of(np.array([7]), np.array([code]))
            assert positions.tolist() == [7] * len(expected)
            assert found.tolist() == expected
            assert keys.last_row_of(np.array([code])).tolist() == expected[-1:]


def test_texts_with_the_same_hash_do_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    def same_hash(data: object, offsets: object, out: Any) -> None:
        out[:] = 7

    monkeypatch.setattr(kernels, "xxh64", same_hash)
    keys = SourceKeys([pa.array(["a", "b", None, "a"])], ["k"])
    assert keys.num_codes == 2
    assert codes_of(keys, [pa.array(["b", "c", "a", None])]) == [1, NO_CODE, 0, NO_CODE]
    lonely = SourceKeys([pa.array(["a", "a"])], ["k"])
    assert codes_of(lonely, [pa.array(["b", "a"])]) == [NO_CODE, 0]


def test_dictionaries_match_by_their_values() -> None:
    keys = SourceKeys([pa.array(["z", "a", None]).dictionary_encode()], ["k"])
    assert codes_of(keys, [pa.array(["a", None, "z", "b"]).dictionary_encode()]) == [1, NO_CODE, 0, NO_CODE]
    assert codes_of(keys, [pa.array(["a", "z"])]) == [1, 0]
    plain = pa.array(["a", None])
    assert key_hashes([plain.dictionary_encode()])[0].tolist() == key_hashes([plain])[0].tolist()


def test_nested_key_column_raises_with_its_name() -> None:
    with pytest.raises(UnsupportedFeature, match="'k'"):
        SourceKeys([pa.array([[1]])], ["k"])

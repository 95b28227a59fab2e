"""Text is sorted by integers, in the order and with the stability of a sort of the whole values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_ops.indices.sort_keys import sort_indices
from lance_ops.indices.text_order import has_text_order, text_sort_indices

ALPHABETS = {
    "digits": b"0123456789",
    "few letters": b"ab",
    "zero bytes": b"\x00\x01",
    "all bytes": bytes(range(256)),
}


def _values(seed: int, alphabet: bytes, longest: int, prefix: bytes, nulls: float) -> list[bytes | None]:
    rng = np.random.default_rng(seed)
    return [
        None if rng.random() < nulls else prefix + bytes(rng.choice(list(alphabet), rng.integers(longest + 1)).tolist())
        for _ in range(rng.integers(1, 200))
    ]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("nulls", [0, 0.3])
@pytest.mark.parametrize("prefix", [b"", b"customer-", b"\x00" * 9])
@pytest.mark.parametrize("longest", [0, 2, 7, 8, 20])
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_the_order_is_that_of_the_whole_values(
    alphabet: str, longest: int, prefix: bytes, nulls: float, kind: pa.DataType
) -> None:
    for seed in range(6):
        values = pa.array(_values(seed, ALPHABETS[alphabet], longest, prefix, nulls), kind)
        for part in (values, values.slice(len(values) // 3), values.slice(1, len(values) // 2)):
            expected = pc.array_sort_indices(part, null_placement="at_start").to_pylist()
            assert sort_indices(part).to_pylist() == expected
            if has_text_order(part):
                assert text_sort_indices(part).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "compared"),
    [
        ([f"customer-{number:06}" for number in range(1000)], []),
        ([f"customer-{number % 7}" for number in range(1000)], []),
        ([f"{number:012}" for number in range(0, 10**12, 10**9)], []),
        ([f"{number:08}-{number // 2}" for number in range(1000)], []),
        ([f"{min(number, 900):08}-the row-{number}" for number in range(1000)], [100]),
        ([f"{number % 2}-the row-{number}" for number in range(1000)], [1000]),
    ],
    ids=["short", "short and repeated", "first bytes differ", "longer", "some first bytes are equal", "most are equal"],
)
def test_only_values_whose_first_bytes_are_equal_are_compared_as_a_whole(
    values: list[str], compared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = pa.array(values[::-1]).cast(pa.binary())
    expected = pc.array_sort_indices(keys).to_pylist()
    lengths, sort = list[int](), pc.array_sort_indices

    def noting(keys: pa.Array, **options: object) -> pa.Array:
        lengths.append(len(keys))
        return sort(keys, **options)

    monkeypatch.setattr(pc, "array_sort_indices", noting)
    assert sort_indices(keys).to_pylist() == expected
    assert lengths == compared

"""Nested sort keys compare as the nested values do."""

from __future__ import annotations

import itertools
import random
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.indices.nested_sort_keys import is_nested_sortable, nested_keys

POINT = pa.struct([("x", pa.int16()), ("y", pa.string())])
TYPES: dict[str, pa.DataType] = {
    "list of ints": pa.list_(pa.int32()),
    "list of bytes": pa.large_list(pa.binary()),
    "list of floats": pa.list_(pa.float64()),
    "list of booleans": pa.list_(pa.bool_()),
    "list of dates": pa.list_(pa.date32()),
    "list of unsigned": pa.list_(pa.uint8()),
    "list of decimals": pa.list_(pa.decimal128(25, 2)),
    "list of 256 bits": pa.list_(pa.decimal256(40, 1)),
    "list of nothing": pa.list_(pa.null()),
    "pair": pa.list_(pa.int8(), 2),
    "struct": POINT,
    "list of structs": pa.list_(POINT),
    "list of lists": pa.list_(pa.list_(pa.string())),
    "struct of lists": pa.struct([("a", pa.list_(pa.int8())), ("b", POINT)]),
    "empty struct": pa.struct([]),
}


def drawn(kind: pa.DataType, rng: random.Random) -> Any:
    types = pa.types
    if types.is_null(kind) or rng.random() < 0.2:
        return None
    if types.is_struct(kind):
        return {field.name: drawn(field.type, rng) for field in kind}
    if types.is_fixed_size_list(kind):
        return [drawn(kind.value_type, rng) for _ in range(kind.list_size)]
    if types.is_list(kind) or types.is_large_list(kind):
        return [drawn(kind.value_type, rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    if types.is_string(kind):
        return rng.choice(("", "a", "aa", "ab", "b", "é", "a\0", "a\0b"))
    if types.is_binary(kind):
        return rng.choice((b"", b"\0", b"\0\0", b"\0\xff", b"a", b"\xff"))
    if types.is_boolean(kind):
        return rng.random() < 0.5
    if types.is_decimal(kind):
        return Decimal(rng.randint(-(10**9), 10**9)).scaleb(-1) * rng.choice((0, 1, 10**12))
    if types.is_floating(kind):
        return rng.choice((-1.5, -0.5, 0.0, 0.25, 3.0, float("inf"), float("-inf")))
    if types.is_date32(kind):
        return pa.scalar(rng.randint(-3, 3), pa.date32()).as_py()
    return rng.randint(0, 3) if types.is_unsigned_integer(kind) else rng.randint(-3, 3)


def compared(left: Any, right: Any, kind: pa.DataType, null: int) -> int:
    """Compare in ascending order; `null` is -1 where nulls come first."""
    types = pa.types
    if left is None or right is None:
        return null * ((left is None) - (right is None))
    if types.is_struct(kind):
        pairs = ((left[field.name], right[field.name], field.type) for field in kind)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        pairs = ((a, b, kind.value_type) for a, b in zip(left, right, strict=False))
    else:
        raw = [side.encode() if isinstance(side, str) else side for side in (left, right)]
        return (raw[0] > raw[1]) - (raw[0] < raw[1])
    for a, b, below in pairs:
        verdict = compared(a, b, below, null)
        if verdict:
            return verdict
    return 0 if types.is_struct(kind) else (len(left) > len(right)) - (len(left) < len(right))


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
def test_keys_compare_as_the_values_do(kind: pa.DataType) -> None:
    assert is_nested_sortable(kind)
    rng = random.Random(3)
    whole = pa.array([drawn(kind, rng) for _ in range(80)], kind)
    values = whole.slice(7, 60)
    for ascending, nulls_first in itertools.product((True, False), repeat=2):
        keys = nested_keys(values, ascending=ascending, nulls_first=nulls_first).to_pylist()
        assert [key is None for key in keys] == [value is None for value in values.to_pylist()]
        null = -1 if nulls_first == ascending else 1
        order = cmp_to_key(lambda a, b, null=null: compared(a, b, kind, null))  # type: ignore[misc]  # a default binds it
        pairs = [pair for pair in zip(values.to_pylist(), keys, strict=True) if pair[0] is not None]
        for (value, key), (other, other_key) in itertools.pairwise(sorted(pairs, key=lambda pair: order(pair[0]))):
            assert (key < other_key, key == other_key) == (order(value) < order(other), order(value) == order(other))


def test_nested_types_of_unsortable_types_are_not_sortable() -> None:
    interval = pa.month_day_nano_interval()
    for kind in (pa.list_(interval), pa.struct([("a", pa.int8()), ("b", interval)]), pa.map_(pa.int8(), pa.int8())):
        assert not is_nested_sortable(kind)
    assert not is_nested_sortable(pa.int8())

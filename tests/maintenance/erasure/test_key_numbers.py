"""Keys that are numbers equal the numbers of any other type as Python compares them, and exactly."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.erasure import ErasureOptions, Subject, erase, plan_erasure
from lance_ops.maintenance.erasure.subject.fitted_keys import fitted
from lance_ops.maintenance.erasure.subject.key_join import HasKey
from lance_ops.maintenance.erasure.subject.shared_table import SharedTable

INTEGERS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
DECIMALS = [
    pa.decimal32(5, 1),
    pa.decimal64(17, 3),
    pa.decimal128(5, 5),
    pa.decimal128(9, 0),
    pa.decimal128(10, 2),
    pa.decimal128(20, 0),
    pa.decimal128(38, 10),
    pa.decimal128(38, 38),
    pa.decimal128(6, -2),
    pa.decimal128(38, -2),
    pa.decimal256(10, 2),
    pa.decimal256(76, 0),
    pa.decimal256(76, 40),
    pa.decimal256(76, 70),
]
TYPES = [*INTEGERS, *FLOATS, *DECIMALS]

POWERS = [sign << bits for bits in (7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64) for sign in (1, -1)]
FRACTIONS = (
    "0.5",
    "-0.5",
    "0.25",
    "-2.5",
    "0.001",
    "5.01",
    "9999.9",
    "-9999.9",
    "1e20",
    "-1e20",
    "1e75",
    "-1e75",
    "1e-38",
)
NUMBERS: list[Any] = [
    *(sign * each for each in (0, 1, 5, 42, 100, 99_999, 1_000_000) for sign in (1, -1)),
    *(power + step for power in POWERS for step in (-1, 0, 1)),
    *map(Decimal, FRACTIONS),
    -0.0, math.inf, -math.inf, math.nan, 65504.0, 65520.0, 3.0e38, 1e39, -1e300, 5e-324,
]  # fmt: skip


def stored(number: Any, kind: pa.DataType) -> Any:
    """Return a number as a column of a type stores it, or None if it stores another one."""
    if pa.types.is_floating(kind):
        with np.errstate(over="ignore"):
            near = float(kind.to_pandas_dtype()(float(number)))
        return near if near == number or (near != near and number != number) else None
    if not math.isfinite(number):
        return None
    exact = Decimal(number)
    if pa.types.is_integer(kind):
        bounds = np.iinfo(kind.to_pandas_dtype())
        return int(exact) if exact == int(exact) and int(bounds.min) <= int(exact) <= int(bounds.max) else None
    sign, digits, exponent = exact.as_tuple()
    units = int("".join(map(str, digits)))
    shift = int(exponent) + kind.scale
    if shift < 0 and units % 10**-shift:
        return None
    units = units * 10**shift if shift >= 0 else units // 10**-shift
    return Decimal(f"{'-' if sign else ''}{units}E{-kind.scale}") if units < 10**kind.precision else None


def array(numbers: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(np.array(numbers, np.float16)) if pa.types.is_float16(kind) else pa.array(numbers, kind)


def computed_type(kind: pa.DataType) -> pa.DataType:
    return pa.float32() if pa.types.is_float16(kind) else kind


def same(first: Any, second: Any) -> bool:
    return bool(first == second or (first != first and second != second))


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("given", TYPES, ids=str)
def test_a_number_is_dropped_only_if_no_value_of_the_type_equals_it(given: pa.DataType, kind: pa.DataType) -> None:
    keys = [value for value in (stored(each, given) for each in NUMBERS) if value is not None]
    assert len(keys) >= 3
    values = array(keys, given).cast(computed_type(given)) if pa.types.is_float16(given) else array(keys, given)
    found, held = fitted(values, computed_type(kind))
    assert found.type == computed_type(kind)
    may_round = pa.types.is_floating(given) and pa.types.is_decimal(kind)
    may_round |= pa.types.is_decimal(given) and pa.types.is_floating(kind)
    for key, value, is_held in zip(keys, found.to_pylist(), held, strict=True):
        if stored(key, computed_type(kind)) is not None:
            assert is_held and same(key, value), (key, value)
        else:
            assert may_round or not is_held, (key, value)


@pytest.mark.parametrize(
    ("given", "kind", "key", "value"),
    [
        (pa.float64(), pa.decimal128(10, 2), 0.1, Decimal("0.10")),
        (pa.float32(), pa.decimal128(10, 2), float(np.float32(0.1)), Decimal("0.10")),
        (pa.decimal128(10, 2), pa.float64(), Decimal("0.10"), 0.1),
        (pa.decimal128(10, 2), pa.float32(), Decimal("-0.10"), -float(np.float32(0.1))),
        (pa.float64(), pa.decimal128(10, 2), 0.101, None),
        (pa.decimal128(10, 0), pa.float32(), Decimal(16_777_217), None),
        (pa.float64(), pa.decimal128(3, 2), 10.0, None),
    ],
)
def test_a_float_and_a_decimal_are_equal_if_a_cast_turns_each_into_the_other(
    given: pa.DataType, kind: pa.DataType, key: Any, value: Any
) -> None:
    found, held = fitted(pa.array([key], given), kind)
    assert held.tolist() == [value is not None]
    assert value is None or found.to_pylist() == [value]


def test_many_keys_are_compared_in_parts() -> None:
    found, held = fitted(pa.array(range(200_000), pa.int64()), pa.decimal128(5, 0))
    assert held.sum() == 100_000
    assert found[65_536].as_py() == 65_536
    assert len(fitted(pa.array([], pa.int64()), pa.decimal128(5, 0))[0]) == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.decimal128(10, 2), pa.int64()),
        (pa.decimal128(9, 0), pa.int32()),
        (pa.int64(), pa.decimal128(10, 0)),
        (pa.float16(), pa.int64()),
        (pa.int64(), pa.float16()),
    ],
    ids=str,
)
def test_an_old_version_that_stores_the_keys_as_other_numbers_is_searched(
    dataset_uri: str, before: pa.DataType, after: pa.DataType
) -> None:
    lance_ops.write_dataset(pa.table({"k": array([4, 5], before)}), dataset_uri)
    made = lance_ops.write_dataset(pa.table({"k": array([6], after)}), dataset_uri, mode="overwrite")
    subject = Subject.of_keys(pa.table({"k": array([5], after)}))
    found = plan_erasure(made.snapshot, subject)
    assert {version: str(why) for version, why in found.main.holding.items()} == {
        1: "it names files that store the rows"
    }
    report = erase(made.snapshot, subject, ErasureOptions("request 12"))
    assert report.is_proven, report.unproven
    assert report.removed_versions == ("main/1",)


@pytest.mark.parametrize(
    "kind", [pa.string_view(), pa.binary_view(), pa.float16(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_keys_of_types_that_only_hold_values_otherwise_are_compared(dataset_uri: str, kind: pa.DataType) -> None:
    texts, floats = ["a", "b", "b"], [1.5, 2.5, 2.5]
    plain = (
        array(floats, kind)
        if pa.types.is_float16(kind)
        else pa.array(texts).cast(pa.binary() if pa.types.is_binary_view(kind) else pa.string())
    )
    keys = (
        plain
        if plain.type == kind
        else plain.cast(kind)
        if not pa.types.is_dictionary(kind)
        else plain.dictionary_encode()
    )
    made = lance_ops.write_dataset(pa.table({"k": plain}), dataset_uri)
    subject = Subject.of_keys(pa.table({"k": keys.slice(1)}))
    assert subject.keys is not None and subject.keys.table.num_rows == 1
    assert plan_erasure(made.snapshot, subject).num_live_rows == 2
    HasKey.bind(made.snapshot, SharedTable(pa.table({"k": keys})))

"""Values made without `pa.scalar` and `pa.array` are those that they make, and refused with the same errors."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.arrow import array_of_numbers, array_of_scalars, array_of_truths, scalar

VALUES: list[Any] = [
    *(None, True, False, "", "a", "é", "x" * 300, "\ud800", b"a", b"", b"\0" * 300),
    *(0, 1, -1, 127, 128, 255, 256, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64),
    *(0.0, -0.0, 1.5, 0.1, float("nan"), float("inf"), 1e300),
    *map(Decimal, ("1.50", "-0.05", "1E+3", "1E+9999", "NaN", "9" * 38, "9" * 5000, "0.00", "-0", "99999999.99")),
]
KINDS = [
    *(None, pa.null(), pa.bool_(), pa.bool8(), pa.uuid(), pa.month_day_nano_interval()),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.string_view(), pa.binary()),
    *(pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(10, 2), pa.decimal128(38, 0), pa.decimal256(60, 5)),
    *(pa.timestamp("ns", "UTC"), pa.timestamp("s"), pa.duration("us"), pa.date32(), pa.date64()),
    *(pa.time32("s"), pa.time64("us"), pa.list_(pa.int8()), pa.struct([("a", pa.int8())])),
    pa.dictionary(pa.int8(), pa.string()),
]


def outcome(make: Any, *args: Any) -> tuple[Any, ...]:
    """Return the type, validity and bytes of what is made, or the error."""
    try:
        made = make(*args)
    except Exception as error:  # noqa: BLE001 # whatever pyarrow raises
        return type(error), str(error)
    stored = pa.repeat(made, 1).buffers() if made.is_valid else []
    return type(made), made.type, made.is_valid, [None if each is None else each.to_pybytes() for each in stored]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_scalar_is_the_one_that_pyarrow_makes(kind: pa.DataType | None) -> None:
    for value in VALUES:
        assert outcome(scalar, value, kind) == outcome(pa.scalar, value, kind), value


@pytest.mark.parametrize("length", [0, 1, 2, 64, 65])
def test_an_array_of_scalars_is_the_one_that_pyarrow_makes(length: int) -> None:
    for kind, one in ((pa.int32(), 7), (pa.string(), "x"), (pa.decimal128(5, 2), Decimal("1.25"))):
        values = [pa.scalar(each, kind) for each in itertools.islice(itertools.cycle([one, None]), length)]
        array = array_of_scalars(values, kind)
        array.validate(full=True)
        assert array.equals(pa.array(values, kind))


def test_scalars_of_another_type_are_converted_as_pyarrow_does() -> None:
    assert array_of_scalars([pa.scalar(1, pa.int8())], pa.int8()).type == pa.int8()
    with pytest.raises(pa.ArrowInvalid):
        array_of_scalars([pa.scalar("a")], pa.int8())


@pytest.mark.parametrize("length", [0, 1, 8, 9])
def test_numbers_and_masks_become_the_arrays_that_pyarrow_makes(length: int) -> None:
    mask = np.arange(length * 2)[::2] % 3 == 1
    for dtype in (np.int64, np.uint64, np.float32):
        numbers = np.arange(length * 2, dtype=dtype)[::2]
        for is_null in (None, mask, np.zeros(length, bool)):
            array = array_of_numbers(numbers, is_null)
            array.validate(full=True)
            assert array.equals(pa.array(numbers, mask=is_null))
    assert array_of_truths(mask).equals(pa.array(mask))
    contiguous = np.arange(length)
    assert array_of_numbers(contiguous).buffers()[1].address == contiguous.ctypes.data

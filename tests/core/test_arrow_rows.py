"""Rows are selected correctly from any slice, also of nested fixed-size lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.core.arrow.arrow_rows import rows_at, rows_where

NUMBERS = pa.array(np.arange(96), pa.int32())


def nested(mask: list[bool] | None = None) -> pa.FixedSizeListArray:
    inner = pa.FixedSizeListArray.from_arrays(NUMBERS, 6)
    return pa.FixedSizeListArray.from_arrays(inner, 2, mask=None if mask is None else pa.array(mask))


def extended() -> pa.ExtensionArray:
    tensor = pa.fixed_shape_tensor(pa.int32(), [6])
    inner = pa.ExtensionArray.from_storage(tensor, pa.FixedSizeListArray.from_arrays(NUMBERS, 6))
    return pa.FixedSizeListArray.from_arrays(inner, 2)


HALF_NULL = [False, True] * 4
CASES = {
    "nested": nested(),
    "with nulls": nested(HALF_NULL),
    "three deep": pa.FixedSizeListArray.from_arrays(nested(), 2),
    "of an extension type": extended(),
    "in a struct": pa.StructArray.from_arrays([nested()], ["x"]),
    "sliced in a struct": pa.StructArray.from_arrays([nested().slice(2)], ["x"]),
    "in a struct with nulls": pa.StructArray.from_arrays([nested(HALF_NULL)], ["x"], mask=pa.array(HALF_NULL)),
    "in a struct in a struct": pa.StructArray.from_arrays(
        [pa.StructArray.from_arrays([nested().slice(1)], ["x"]).slice(1)], ["y"]
    ),
    "sliced in a list": pa.ListArray.from_arrays([0, 1, 3, 4, 6], nested().slice(2)),
    "in a large list": pa.LargeListArray.from_arrays([0, 1, 3, 4, 8], nested()),
    "in a fixed-size list of structs": pa.FixedSizeListArray.from_arrays(
        pa.StructArray.from_arrays([nested()], ["x"]), 2
    ),
    "in a map": pa.MapArray.from_arrays([0, 2, 4, 8], pa.array(list("abcdefgh")), nested()),
    "flat": pa.array(["a", None, "c", "d"]),
}


@pytest.mark.parametrize("array", CASES.values(), ids=CASES)
def test_rows_selected_from_a_slice_match_python_selection(array: pa.Array) -> None:
    for part in (array, array.slice(1), array.slice(1, 2)):
        expected = part.to_pylist()
        backwards = np.arange(len(part))[::-1]
        even = np.arange(len(part)) % 2 == 0
        for data in (pa.table({"c": part}), pa.record_batch({"c": part})):
            assert rows_at(data, backwards)["c"].to_pylist() == expected[::-1]
            assert rows_where(data, even)["c"].to_pylist() == expected[::2]
            assert rows_at(data, pa.array([0, None]))["c"].to_pylist() == [expected[0], None]

"""Keys of merges, updates and deletes are equal as `=` says: 0.0 is -0.0, and every NaN is every other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops

NEGATIVE_NAN = math.copysign(math.nan, -1)
KEYS = [0.0, -0.0, math.nan, NEGATIVE_NAN, 1.0, math.inf]


def rows(keys: list[float], first: int, arrow_type: pa.DataType) -> pa.Table:
    values = pa.array(np.array(keys, arrow_type.to_pandas_dtype()), arrow_type, from_pandas=False)
    return pa.table({"k": values, "v": range(first, first + len(keys))})


def table(root: Path, arrow_type: pa.DataType, *, indexed: bool) -> Any:
    dataset = lance_ops.write_dataset(rows(KEYS, 0, arrow_type), str(root / "t"))
    if indexed:
        dataset.create_scalar_index("k", "BTREE")
    return dataset


def values(dataset: Any) -> list[int]:
    return sorted(dataset.to_table(columns=["v"]).column("v").to_pylist())


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("arrow_type", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (0.0, [2, 3, 4, 5, 100, 100]),
        (-0.0, [2, 3, 4, 5, 100, 100]),
        (math.nan, [0, 1, 4, 5, 100, 100]),
        (NEGATIVE_NAN, [0, 1, 4, 5, 100, 100]),
        (1.0, [0, 1, 2, 3, 5, 100]),
        (2.0, [0, 1, 2, 3, 4, 5, 100]),
    ],
)
def test_an_upsert_finds_equal_keys(
    tmp_path: Path, key: float, expected: list[int], arrow_type: pa.DataType, indexed: bool
) -> None:
    dataset = table(tmp_path, arrow_type, indexed=indexed)
    merge = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    assert ("index" in merge.explain_plan().lower()) == indexed
    merge.execute(rows([key], 100, arrow_type))
    assert values(dataset) == expected


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("condition", "deleted"),
    [
        ("k = 0", {0, 1}),
        ("k = -0.0", {0, 1}),
        ("k = CAST('NaN' AS DOUBLE)", {2, 3}),
        ("k > 1", {2, 3, 5}),
        ("k < 0", set()),
        ("k NOT IN (0.0, CAST('NaN' AS DOUBLE))", {4, 5}),
    ],
)
def test_a_delete_and_an_update_find_equal_keys(
    tmp_path: Path, condition: str, deleted: set[int], indexed: bool
) -> None:
    dataset = table(tmp_path, pa.float64(), indexed=indexed)
    dataset.update({"v": "v + 100"}, where=condition)
    changed = [v + 100 if v in deleted else v for v in range(len(KEYS))]
    assert values(dataset) == sorted(changed)
    dataset.delete(condition)
    assert values(dataset) == [v for v in range(len(KEYS)) if v not in deleted]

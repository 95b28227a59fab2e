"""A filter gives the same rows, or the same error, by a scan and by an index."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import InvalidInput

NEGATIVE_NAN = math.copysign(math.nan, -1)
FLOATS = [None, 0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan, NEGATIVE_NAN, 5e-324, 1e308, -1e308]
BYTES = [None, 0, 1, 2, 127, -128, 7, 126, -127, 100, -7, 5]
UNSIGNED = [None, 0, 1, 2, 2**64 - 1, 2**63, 7, 2**64 - 2, 2**63 - 1, 100, 3, 5]
NAN, INF = "CAST('NaN' AS DOUBLE)", "CAST('inf' AS DOUBLE)"
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def floats(arrow_type: pa.DataType) -> pa.Array:
    values = np.array([0 if value is None else value for value in FLOATS])
    with np.errstate(over="ignore"):
        return pa.array(values.astype(arrow_type.to_pandas_dtype()), mask=np.array([value is None for value in FLOATS]))


TABLE = pa.table(
    {
        "id": range(12),
        "f16": floats(pa.float16()),
        "f32": floats(pa.float32()),
        "f64": floats(pa.float64()),
        "i8": pa.array(BYTES, pa.int8()),
        "u64": pa.array(UNSIGNED, pa.uint64()),
    }
)
INDEXED = ("id", "f16", "f32", "f64", "i8", "u64")
ON_FLOATS = [
    f"{column} {op} {literal}" for column, op, literal in product(("f16", "f64"), OPERATORS, ("0", "-0.0", NAN, INF))
]
ON_LISTS = [
    f"{column} {word} ({literals})"
    for column, word, literals in product(("f16", "f32"), ("IN", "NOT IN"), ("0.0, 7", f"-0.0, {NAN}", "1.5, NULL"))
]
ON_INTEGERS = [
    f"{column} {op} {literal}"
    for column, op, literal in product(
        ("i8", "u64"),
        OPERATORS,
        ("-129", "127", "9223372036854775808", "1.5"),
    )
]
OTHERS = [
    *("f64 BETWEEN -0.0 AND 0.0", f"f64 BETWEEN 1 AND {NAN}", f"f64 > 1 AND f64 < {NAN}", "f64 IS NULL", "NOT f64 > 0"),
    *("u64 + 1 = 18446744073709551616", "u64 - 1 < 0", "u64 % 2 = 1 AND u64 > 5", "-i8 = 128", "i8 + i8 = -256"),
    *("CAST(i8 AS TINYINT UNSIGNED) = 7 AND i8 > 0", "CAST(u64 AS BIGINT) = 7 AND u64 < 50", "10 / i8 = 5 AND i8 = 2"),
    *("10 / i8 = 5 AND id = 3", "id = 3 AND 10 / i8 = 5", "CAST(u64 AS BIGINT) = 2 AND 10 / i8 = 5 AND id = 3"),
    *("10 / i8 = 5", "id < 3 AND 10 / i8 = 5", "CAST(u64 AS TINYINT) > 0", "abs(i8) > 5 AND i8 > -128", "abs(i8) > 5"),
]


def answer(dataset: Any, condition: str, *, indexed: bool) -> Any:
    try:
        found = dataset.scanner(columns=["id"], filter=condition, use_scalar_index=indexed).to_table()
    except InvalidInput:
        return "raises"
    return sorted(found.column("id").to_pylist())


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a table with an index on each column; deleted rows hold values for which nothing can be computed."""
    uri = str(tmp_path_factory.mktemp("filters") / "t")
    dataset = lance_ops.write_dataset(TABLE, uri)
    for column in INDEXED:
        dataset.create_scalar_index(column, "BTREE")
    return dataset


@pytest.mark.parametrize("condition", [*ON_FLOATS, *ON_LISTS, *ON_INTEGERS, *OTHERS])
def test_an_index_gives_the_answer_of_a_scan(dataset: Any, condition: str) -> None:
    assert answer(dataset, condition, indexed=True) == answer(dataset, condition, indexed=False)


@pytest.mark.parametrize("condition", ["f64 = 0", f"f32 >= {NAN}", "u64 > 5", "id = 3 AND 10 / i8 = 5"])
def test_the_index_is_used(dataset: Any, condition: str) -> None:
    assert "ScalarIndexQuery" in dataset.scanner(filter=condition).explain_plan()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("10 / i8 = 5", "raises"),
        ("10 / i8 = 5 AND id = 3", [3]),
        ("10 / i8 = 5 AND id = 1", "raises"),
        ("CAST(u64 AS BIGINT) = 2 AND 10 / i8 = 5 AND id IN (1, 3, 4)", [3]),
        ("CAST(u64 AS BIGINT) = 2 AND 10 / i8 = 5 AND id IN (0, 3)", [3]),
        ("CAST(u64 AS BIGINT) = 2 AND 10 / i8 = 5 AND id IN (2, 3)", [3]),
        ("CAST(u64 AS TINYINT) = 2 AND 1 / (id - 4) = 0", "raises"),
    ],
)
@pytest.mark.parametrize("indexed", [True, False])
def test_an_error_counts_only_in_rows_that_the_other_conditions_leave(
    dataset: Any, condition: str, expected: Any, indexed: bool
) -> None:
    assert answer(dataset, condition, indexed=indexed) == expected


def test_deleted_rows_raise_no_error(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(TABLE, str(tmp_path / "t"))
    dataset.delete("i8 = 0")
    assert answer(dataset, "10 / i8 = 5", indexed=False) == [3]


@pytest.fixture(scope="module")
def zoned(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a table with a zone map on `x`, whose first zone has zeros in both columns, and a null beside a zero."""
    x = pa.array([None if row == 3 else row for row in range(20_000)])
    table = pa.table({"id": range(20_000), "x": x, "y": [row - row % 7 for row in range(20_000)]})
    dataset = lance_ops.write_dataset(table, str(tmp_path_factory.mktemp("zoned") / "t"))
    dataset.create_scalar_index("x", "ZONEMAP")
    return dataset


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("(x = 10002 AND 100020 / x = 10) OR x = 10001", [10_001, 10_002]),
        ("(x = 10002 AND 10 / y = 5) OR x = 10001", [10_001]),
        ("((x = 10002 AND 100020 / x = 10) OR x = 10001) IS TRUE", [10_001, 10_002]),
        ("NOT (x != 10002 OR 100020 / x != 10) OR x = 10001", [10_001, 10_002]),
        ("x > 9000 AND ((x = 10002 AND 100020 / x = 10) OR x = 10001)", [10_001, 10_002]),
        ("(x = 5 AND 10 / y = 2) OR x = 10001", "raises"),
        ("(x >= 0 AND 10 / x = 5) OR x = 10001", "raises"),
        ("10 / x = 5 OR x = 10001", "raises"),
    ],
)
@pytest.mark.parametrize("indexed", [True, False])
def test_an_error_inside_an_alternative_counts_only_where_the_alternative_may_hold(
    zoned: Any, condition: str, expected: Any, indexed: bool
) -> None:
    assert answer(zoned, condition, indexed=indexed) == expected

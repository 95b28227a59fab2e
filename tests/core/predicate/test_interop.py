"""A filter selects the same rows in pylance and in this library."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given

from lance_ops.core.predicate import parse_filter
from tests.core.predicate import reference
from tests.core.predicate.reference import Case

lance = pytest.importorskip("lance", reason="pylance is not installed")

pytestmark = pytest.mark.interop

NAN = float("nan")
COLUMNS: dict[str, tuple[list[Any], pa.DataType]] = {
    "id": ([0, 1, 2, 3, 4], pa.int64()),
    "i8": ([1, -128, 127, None, 0], pa.int8()),
    "u64": ([2**64 - 1, 2, 3, None, 2**63], pa.uint64()),
    "f32": ([0.1, NAN, -0.0, None, 0.0], pa.float32()),
    "f64": ([0.1, NAN, -0.0, None, float("inf")], pa.float64()),
    "s": (["a", "it's", 'say "x"', None, "A%b_"], pa.string()),
    "large": (["a", "b", "c", None, "d"], pa.large_string()),
    "b": ([True, False, True, None, False], pa.bool_()),
    "raw": ([b"a", b"\x00", b"\xff", None, b""], pa.binary()),
    "ts": (
        [
            dt.datetime(2020, 1, 1),
            dt.datetime(2021, 1, 1, 12),
            dt.datetime(1960, 1, 1),
            None,
            dt.datetime(2020, 1, 1, 0, 0, 0, 1),
        ],
        pa.timestamp("us"),
    ),
    "utc": (
        [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1, 12), dt.datetime(1960, 1, 1), None, dt.datetime(2020, 7, 1)],
        pa.timestamp("us", "UTC"),
    ),
    "day": ([dt.date(2020, 1, 1), dt.date(2021, 1, 1), dt.date(1960, 1, 1), None, dt.date(2020, 1, 2)], pa.date32()),
    "dec": ([Decimal("1.10"), Decimal("2.25"), Decimal("-3.00"), None, Decimal("0.00")], pa.decimal128(8, 2)),
    "st": (
        [
            {"x": 1, "y": {"z": "q"}},
            {"x": None, "y": {"z": "w"}},
            {"x": 3, "y": None},
            None,
            {"x": 5, "y": {"z": None}},
        ],
        pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))]),
    ),
    "tags": ([["a", "b"], [], ["c", None], None, ["a"]], pa.list_(pa.string())),
    "Mixed": ([1, 2, 3, None, 5], pa.int64()),
    "with space": ([1, 2, 3, None, 5], pa.int64()),
}
TABLE = pa.table({name: pa.array(values, kind) for name, (values, kind) in COLUMNS.items()})

FILTERS = r"""
i8 = 1
i8 != 1
i8 <> 1 AND i8 IS NOT NULL
i8 NOT IN (1, NULL)
i8 IN (1, 127)
1 < i8
i8 NOT BETWEEN 0 AND 1
i8 BETWEEN 1 AND 0
i8 + 100 > 127
i8 * 2 - 1 = 1
i8 / 2 = 63
i8 % -2 = 1
-i8 = -1
i8 < f64
u64 = 18446744073709551615
u64 > 9223372036854775807
f32 = 0.1
f32 < 0.1
f32 > 1e39
f64 = 0
f64 < 0
f64 > 5
NOT (f64 > 5)
f64 BETWEEN 0 AND 5
f64 != 0.1
f64 IN (0.1, 0.0)
f64 = CAST('NaN' AS DOUBLE)
f64 IN (CAST('NaN' AS DOUBLE), 1.5)
isnan(f64)
f64 / 2 < 1
round(f64) = 0
s = "a"
s = 'it''s'
s = 'say "x"'
s > 'a'
s LIKE 'A\%b\_'
s LIKE '_'
s NOT LIKE 'a%'
s ILIKE 'a%'
s LIKE NULL
lower(s) = 'a' OR upper(large) = 'B'
length(s) = 1
s || 'x' = 'ax'
concat(s, 'x') = 'x'
starts_with(s, 'a') OR ends_with(s, '"') OR contains(s, '''')
regexp_match(s, '^[aA]')
regexp_like(s, 'A', 'i')
large = 'b'
b
NOT b
b = true
b IS TRUE
b IS NOT TRUE
b IS NOT FALSE
(i8 = 1) IS NULL
i8 = i8 IS TRUE
b = (i8 = 1)
i8 = 1 OR NULL
NOT (i8 = 1 AND NULL)
i8 IS DISTINCT FROM 1
i8 IS NOT DISTINCT FROM NULL
raw = X'61'
raw > X'61'
ts = timestamp '2020-01-01 00:00:00'
ts > timestamp(0) '2020-01-01 00:00:00'
ts > timestamp(9) '2020-01-01 00:00:00.000000999'
ts > date '2020-01-01'
utc = timestamp '2020-07-01 00:00:00'
utc = ts
day = date '2020-01-01'
day >= timestamp '2020-01-01 12:00:00'
day < ts
CAST(ts AS DATE) = date '2020-01-01'
date_part('year', ts) = 2020
date_part('dow', ts) = 3
date_trunc('month', ts) = timestamp '2020-01-01 00:00:00'
dec = 1
dec > 1
dec = decimal(8,3) '1.100'
dec < decimal(10,4) '1.1001'
CAST(dec AS DOUBLE) = 2.25
st.x = 1
st.x IS NULL
st.y IS NULL
st IS NULL
st.y.z = 'q'
st['y']['z'] IS NULL
array_has(tags, 'a')
NOT array_has(tags, 'a')
array_has_any(tags, ['a', 'c'])
NOT array_has_all(tags, ['a', 'b'])
array_length(tags) = 2
cardinality(tags) = 0
tags[1] = 'a'
tags[-1] IS NULL
tags IS NULL
mixed = 1
`Mixed` = 1
`with space` = 1
I8 = 1
coalesce(i8, 7) = 7
nullif(i8, 1) IS NULL
abs(f64) >= 0
CAST(i8 AS STRING) = '1'
TRY_CAST(s AS INT) = 1
i8::int = 1
CAST(i8 AS BOOLEAN)
true
false
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return lance.write_dataset(TABLE, tmp_path_factory.mktemp("interop") / "types.lance")


@pytest.mark.parametrize("text", FILTERS.strip().splitlines())
def test_a_filter_selects_the_rows_pylance_selects(text: str, dataset: Any) -> None:
    ours = TABLE["id"].filter(parse_filter(text, TABLE.schema).mask(TABLE))
    assert ours.to_pylist() == dataset.to_table(columns=["id"], filter=text)["id"].to_pylist()


@pytest.mark.parametrize(
    "expression",
    [
        ~pc.field("i8").isin([1]),
        ~pc.field("i8").isin([1, None]),
        pc.field("f64") > 5,
        pc.field("f64") != 0.1,
        pc.is_nan(pc.field("f64")),
        pc.field("s").is_null() | pc.starts_with(pc.field("s"), "a"),
        pc.field("ts") == pa.scalar(dt.datetime(2020, 1, 1)),
        pc.field("day") == dt.date(2020, 1, 1),
        pc.field("raw") == b"a",
        pc.field("i8") + 1 == 2,
        ~pc.field("b"),
    ],
    ids=str,
)
def test_an_expression_selects_the_rows_pylance_selects(expression: pc.Expression, tmp_path: Path) -> None:
    table = TABLE.drop_columns(["u64"])  # pylance uses Substrait, which has no unsigned integers
    dataset = lance.write_dataset(table, tmp_path / "types.lance")
    ours = table["id"].filter(parse_filter(expression, table.schema).mask(table))
    assert ours.to_pylist() == dataset.to_table(columns=["id"], filter=expression)["id"].to_pylist()


RANDOM_ROWS = pa.Table.from_pylist(
    [
        {
            "i8": [-128, -3, -1, 0, 1, 2, 127, None][row % 8],
            "u64": [0, 1, 2, None, 127, 2**63, 2**64 - 1][row % 7],
            "i64": [-(2**63), -2, None, 0, 1, 300, 2**63 - 1][(row // 2) % 7],
            "f64": [NAN, float("-inf"), float("inf"), -0.0, 0.0, 1.0, 0.25, None, -2.0][row % 9],
            "s": ["", "a", "ab", "a%", "é", "_b", None, "b'a", '"', "\\"][row % 10],
            "b": [True, False, None][row % 3],
            "ts": [dt.datetime(2019, 12, 31, 23), dt.datetime(2020, 1, 1), None, dt.datetime(2020, 1, 1, 0, 0, 0, 1)][
                row % 4
            ],
            "d": [dt.date(2019, 12, 30), dt.date(2020, 1, 1), dt.date(2020, 1, 3), None, dt.date(2020, 1, 2)][row % 5],
            "dec": [Decimal("0.00"), Decimal("1.00"), None, Decimal("-2.50"), Decimal("999999.99")][row % 5],
            "st": None if row % 6 == 5 else {"x": [1, -2, None][row % 3], "With Space": ["a", None, "b"][row % 3]},
        }
        for row in range(60)
    ],
    schema=reference.SCHEMA,
)


@pytest.fixture(scope="module")
def random_dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    rows = RANDOM_ROWS.append_column("row", pa.array(range(60)))
    return lance.write_dataset(rows, tmp_path_factory.mktemp("interop") / "rows.lance")


# This library compares by value and keeps SQL's nulls. pylance drops the digits of an instant (or the time of a date
# written as text) that the column cannot hold, converts integers beyond 64 bits to doubles, and loses nulls when it
# merges two lists.
KNOWN_DIFFERENCES = re.compile(rf"TIMESTAMP\(9\)|'\d+-\d+-\d+T|{2**63}|{2**64}|IN \(.*IN \(")


@given(case=reference.cases())
def test_random_filters_that_pylance_takes_select_the_same_rows(case: Case, random_dataset: Any) -> None:
    assume(not KNOWN_DIFFERENCES.search(case.sql))
    try:
        theirs = random_dataset.to_table(columns=["row"], filter=case.sql)["row"].to_pylist()
    except (ValueError, OSError):
        return  # pylance refuses literals that do not fit the column exactly; this library compares them by value
    matches = parse_filter(case.sql, reference.SCHEMA).mask(RANDOM_ROWS)
    assert pc.indices_nonzero(matches).to_pylist() == theirs

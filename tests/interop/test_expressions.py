"""Expressions that reach into nested values, cast by Arrow names or read the clock give what they give in pylance."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, LanceOpsError, UnsupportedFeature
from tests.fuzz.predicates.tables import rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

ITEM = pa.struct([("x", pa.int32()), ("y", pa.string()), ("in", pa.struct([("z", pa.float16())]))])
A, B = {"x": 1, "y": "a", "in": {"z": 0.5}}, {"x": None, "y": "b", "in": None}
LISTS: dict[str, tuple[list[Any], pa.DataType]] = {
    "id": ([0, 1, 2, 3, 4, 5], pa.int64()),
    "k": ([1, 2, 0, None, -1, -2], pa.int8()),
    "l": ([[1, 2, 3], [], None, [None, 5], [7], [8, 9]], pa.list_(pa.int32())),
    "nested": ([[[1], [2, 3]], [], None, [None, [5]], [[]], [[8]]], pa.list_(pa.list_(pa.int32()))),
    "large": ([["a"], [], None, [None, "b"], ["c"], ["d", "e"]], pa.large_list(pa.large_string())),
    "pair": ([[1, 2], [3, 4], None, [None, 5], [7, 8], [8, 9]], pa.list_(pa.float16(), 2)),
    "items": ([[A, B], [], None, [None, A], [B], [A]], pa.list_(ITEM)),
    "s": (
        [{"Deep": A, "l": [1, 2]}, {"Deep": None, "l": None}, None, {"Deep": B, "l": []}, {"Deep": A, "l": [9]}, None],
        pa.struct([("Deep", ITEM), ("l", pa.list_(pa.int64()))]),
    ),
    "current_date": ([1, 2, 3, 4, 5, None], pa.int64()),
}
TABLE = pa.table({name: pa.array(values, kind) for name, (values, kind) in LISTS.items()})

VALUES = r"""
l[0]
l[1]
l[2]
l[-1]
l[-3]
l[4]
l[k]
l[id]
l[id - 1]
l[NULL]
l[1 + 1]
array_element(l, 1)
array_extract(l, -2)
list_element(l, k)
list_extract(l, 0)
nested[1]
nested[1][1]
nested[2][-1]
large[1]
large[-2]
pair[0]
pair[1]
pair[2]
pair[3]
pair[k]
items[1]
items[1]['x']
items[-1].x
items[k]["y"]
items[1]['in']
items[1]['in']['z']
items[1].in.z
get_field(items[1], 'in', 'z')
get_field(s, 'Deep', 'x')
s['Deep']
s['Deep']['x']
s['Deep'].in['z']
s.Deep['y']
S['l'][1]
s.l[-1]
(s)['l']
(l)[1]
coalesce(l[1], id)
items[1]['x'] + 1
upper(items[1]['y'])
arrow_cast(pair[1], 'Float32')
arrow_cast(id, 'Float16')
arrow_cast(items[1], 'Struct("x": Int64, "y": LargeUtf8, "in": Struct("z": Float32))')
arrow_cast(l, 'List(Int64)')
arrow_cast(l, 'LargeList(nullable Float32)')
arrow_cast(pair, 'FixedSizeList(2 x Float64)')
arrow_cast(pair, 'FixedSizeList(2, Float32)')
arrow_cast(id, ' Timestamp( Microsecond , Some("+01:00") ) ')
arrow_cast(id, 'Timestamp(s, None)')
coalesce(NULL, id)
arrow_typeof(s)
arrow_typeof(items)
arrow_typeof(pair[1])
arrow_typeof(k + id)
arrow_typeof(arrow_cast(id, 'Timestamp(us, "UTC")'))
current_date
"""
"""Expressions of columns; both libraries return the same values in columns of the same type."""

WRONG = r"""
l['x']
l[1.5]
l['1']
l[1:2]
l[1, 2]
l[1]['x']
id[1]
s[1]
s['nope']
s['deep']
s.Deep[1]
items.x
items['x']
items[1]['nope']
items[1]['X']
array_element(l)
array_element(l, 1, 2)
array_element(id, 1)
get_field(id, 'x')
get_field(s, 1)
get_field(s, k)
arrow_cast(id)
arrow_cast(id, 'int8')
arrow_cast(id, 'Int8')['x']
arrow_cast(id, 'Nope')
arrow_cast(id, 'Timestamp(us')
arrow_cast(id, 'Timestamp(us, UTC)')
arrow_cast(id, 'Int8 Int8')
arrow_cast(id, NULL)
arrow_cast(id, large[1])
arrow_cast(id - 300, 'UInt8')
now(1)
today
"""
"""Expressions that both libraries refuse."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    uri = str(tmp_path_factory.mktemp("expressions") / "t")
    lance.write_dataset(TABLE, uri, max_rows_per_file=4)
    return lance_ops.dataset(uri), lance.dataset(uri)


def values(dataset: Any, text: str) -> tuple[pa.DataType, str]:
    """Return the type and the values of an expression, as text: Python has no dates after the year 9999."""
    column = dataset.to_table(columns={"value": text, "id": "id"})["value"].combine_chunks()
    return column.type, column.to_string(window=100, container_window=100)


@pytest.mark.parametrize("text", VALUES.strip().splitlines())
def test_an_expression_has_pylance_s_values_and_type(both: tuple[Any, Any], text: str) -> None:
    ours, theirs = both
    assert values(ours, text) == values(theirs, text)


@pytest.mark.parametrize("text", [*VALUES.strip().splitlines()[:-1], "s.Deep.x"])
def test_a_filter_on_an_expression_selects_pylance_s_rows(both: tuple[Any, Any], text: str) -> None:
    def selected(dataset: Any, condition: str) -> list[int] | str:
        try:
            found: list[int] = dataset.to_table(["id"], filter=condition)["id"].to_pylist()
        except (ValueError, OSError):
            return "raises"
        return found

    ours, theirs = both
    for condition in (f"({text}) IS NULL", f"({text}) IS NOT NULL", f"({text}) = 1", f"NOT (({text}) = 'a')"):
        mine, other = selected(ours, condition), selected(theirs, condition)
        assert mine == other or "raises" in (mine, other)  # which literals fit which type is tested elsewhere
        assert "raises" not in (mine, other) or not condition.endswith("NULL")
        if mine != "raises":
            plan = ours.scanner(filter=condition).explain_plan()
            spelled = plan.splitlines()[0].split("full_filter=")[1]
            assert selected(ours, spelled) == mine


@pytest.mark.parametrize("text", WRONG.strip().splitlines())
def test_a_wrong_expression_is_refused_by_both(both: tuple[Any, Any], text: str) -> None:
    ours, theirs = both
    with pytest.raises(LanceOpsError):
        ours.to_table(columns={"value": text, "id": "id"})
    with pytest.raises((ValueError, OSError)):
        theirs.to_table(columns={"value": text, "id": "id"})


ARROW_TYPES = [
    *("Boolean", "Int8", "Int32", "Int64", "UInt8", "UInt64", "Float16", "Float32", "Float64", "Utf8", "LargeUtf8"),
    *("Utf8View", "Binary", "LargeBinary", "BinaryView", "FixedSizeBinary(2)", "Date32", "Timestamp(s)"),
    *("Timestamp(us)", "Timestamp(ns)", 'Timestamp(ms, "UTC")', "Time32(s)", "Time64(us)", "Duration(us)"),
    *("Decimal128(38, 6)", "Decimal128(8, 2)", "Dictionary(Int16, Utf8)", "List(Int64)", "LargeList(Utf8)"),
]


def test_arrow_casts_give_pylance_s_values_or_are_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(rows(Random(3), 0, 40).drop_columns(["wide"]), uri)
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    compared = 0
    differences: list[str] = []
    cases = [(name, arrow_type) for name in ours.schema.names[1:] for arrow_type in ARROW_TYPES]
    cases += [(name, 'Timestamp(us, "Europe/Paris")') for name in ("d32", "d64", "i64", "utc")]
    for name, arrow_type in cases:
        if name != "f16" or "Utf8" not in arrow_type:  # docs/differences.md tells how half floats are spelled
            text = f"arrow_cast({name}, '{arrow_type}')"
            try:
                mine = str(values(ours, text))
            except UnsupportedFeature:
                continue  # pyarrow has no such cast
            except InvalidInput:
                mine = "raises"
            try:
                other = str(values(theirs, text))
            except (ValueError, OSError) as error:
                if "Unsupported CAST" in str(error):
                    continue
                other = "raises"
            if mine != other:
                differences.append(f"{text}: {mine}, not {other}")
            compared += mine != "raises"
    assert not differences, "\n".join(differences)
    assert compared > 250


@pytest.mark.parametrize("text", ["now()", "current_timestamp", "CURRENT_TIMESTAMP()", "NOW()"])
def test_now_is_the_time_of_the_call_in_utc_without_a_zone(both: tuple[Any, Any], text: str) -> None:
    for dataset in both:
        before = time.time_ns()
        column = dataset.to_table(columns={"value": text, "id": "id"})["value"]
        after = time.time_ns()
        assert column.type == pa.timestamp("ns")
        assert len(set(column.to_pylist())) == 1
        assert before <= column[0].value <= after


@pytest.mark.parametrize("text", ["current_date()", "Today()"])
def test_current_date_is_the_date_in_utc(both: tuple[Any, Any], text: str) -> None:
    for dataset in both:
        days = {dt.datetime.now(dt.UTC).date()}
        column = dataset.to_table(columns={"value": text, "id": "id"})["value"]
        assert column.type == pa.date32()
        assert set(column.to_pylist()) <= days | {dt.datetime.now(dt.UTC).date()}


def test_current_time_is_the_time_of_day_in_utc(both: tuple[Any, Any]) -> None:
    day = 86_400 * 10**9
    for dataset in both:
        before = time.time_ns()
        column = dataset.to_table(columns={"value": "current_time", "id": "id"})["value"]
        assert column.type == pa.time64("ns")
        assert (column[0].value - before) % day <= time.time_ns() - before


def test_current_date_is_the_function_in_a_filter_and_the_column_alone(both: tuple[Any, Any]) -> None:
    for dataset in both:
        assert dataset.count_rows("current_date > date '2020-01-01'") == 6
        assert dataset.count_rows("`current_date` = 1") == 1
        assert dataset.to_table(columns={"value": "current_date", "id": "id"})["value"].to_pylist()[0] == 1


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.date32(), pa.date64()], ids=str)
def test_an_index_serves_a_comparison_with_the_present(tmp_path: Path, kind: pa.DataType) -> None:
    today = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    moments = [today - dt.timedelta(days=2), today + dt.timedelta(days=2), None]
    column = pa.array(moments, pa.timestamp("us")).cast(kind, safe=False)
    dataset = lance_ops.write_dataset(pa.table({"id": [0, 1, 2], "t": column}), tmp_path / "t")
    dataset.create_scalar_index("t", "BTREE", name="by_time")
    reference = lance.dataset(str(tmp_path / "t"))
    for text in ("t < now()", "t < current_date", "current_timestamp > t", "t BETWEEN date '2020-01-01' AND today()"):
        assert dataset.to_table(filter=text)["id"].to_pylist() == [0]
        assert reference.to_table(filter=text)["id"].to_pylist() == [0]
        assert "@by_time(BTREE)" in dataset.scanner(filter=text).explain_plan()


def test_updates_and_added_columns_take_the_expressions(tmp_path: Path) -> None:
    outcomes = []
    for library in (lance_ops, lance):
        uri = str(tmp_path / library.__name__)
        dataset = library.write_dataset(TABLE, uri)
        dataset.update({"id": "l[1]", "k": "items[1]['x']"}, where="items[1]['y'] = 'a' OR l[k] > 4")
        dataset.update({"current_date": "arrow_cast(pair[1], 'Int64')"}, where="s['Deep']['x'] = 1")
        dataset.add_columns({"first": "items[1]['in']", "half": "arrow_cast(id, 'Float16')", "item": "pair[2]"})
        dataset.add_columns({"day": "current_date() > date '2020-01-01'", "at": "arrow_cast(now(), 'Int64') > id"})
        outcomes.append(library.dataset(uri).to_table())
    mine, other = outcomes
    assert mine.schema.names == other.schema.names and mine.schema.types == other.schema.types
    assert str(mine.sort_by("k").to_pylist()) == str(other.sort_by("k").to_pylist())


def test_every_task_of_an_update_writes_one_time(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([None] * 6, pa.timestamp("ns"))})
    dataset = lance_ops.write_dataset(table, tmp_path / "t", max_rows_per_file=1)
    dataset.update({"t": "now()"})
    assert len(set(dataset.to_table()["t"].to_pylist())) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("1.5", "-1.5", "1.5 + 2.5", "1.5 / 2.5", "1e30", "abs(-1.5)", "arrow_cast(1.5, 'Decimal128(5, 2)')"),
        *("CAST(1 AS DECIMAL(10, 2))", "decimal(8, 2) '1.5'", "CAST(1.5 AS DECIMAL(10, 2))", "CAST(1.5 AS DOUBLE)"),
    ],
)
def test_a_number_with_a_point_is_a_double_and_a_typed_decimal_is_none(both: tuple[Any, Any], text: str) -> None:
    ours, theirs = both
    assert values(ours, text) == values(theirs, text)


def test_a_number_with_a_point_is_exact_beside_decimals(tmp_path: Path) -> None:
    table = pa.table({"d": pa.array([Decimal("0.30"), Decimal("1.50")], pa.decimal128(8, 2))})
    dataset = lance_ops.write_dataset(table, tmp_path / "t")
    assert dataset.count_rows("d = 0.1 + 0.2") == 1
    assert dataset.count_rows("d > -0.3 AND d < 1.5") == 1
    assert dataset.to_table(columns={"v": "d + 1.10"})["v"].to_pylist() == [Decimal("1.40"), Decimal("2.60")]
    case = "CASE WHEN d > 1 THEN 1.5 ELSE d END"
    assert dataset.to_table(columns={"v": case})["v"].type == pa.decimal128(8, 2)


@pytest.mark.parametrize(
    "text", ["get_field(NULL, 'x')", "get_field(get_field(NULL, 'x'), 'y')", "NULL['x']", "NULL[1]", "(NULL)[NULL]"]
)
def test_a_field_or_an_item_of_null_is_null(both: tuple[Any, Any], text: str) -> None:
    ours, theirs = both
    for condition in (f"{text} IS NULL", f"{text} IS NOT NULL"):
        assert ours.count_rows(condition) == theirs.count_rows(condition)
    mine, other = (side.to_table(columns={"id": "id", "x": text}) for side in both)
    assert mine.equals(other) and mine["x"].null_count == len(mine)

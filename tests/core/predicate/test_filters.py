"""SQL filters select the expected rows, and text that is not a supported filter raises the expected error."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.errors import InvalidFilter, InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import (
    Compare,
    Contains,
    EndsWith,
    Like,
    Predicate,
    StartsWith,
    casts,
    parse_filter,
    parse_value,
)
from lance_ops.core.predicate.casts import cast_values

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("i8", pa.int8()),
        ("f16", pa.float16()),
        ("f32", pa.float32()),
        ("name", pa.string()),
        ("large", pa.large_string()),
        ("view", pa.string_view()),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("raw", pa.binary()),
        ("four", pa.binary(4)),
        ("dec", pa.decimal128(38, 2)),
        ("local", pa.timestamp("us")),
        ("paris", pa.timestamp("ns", "Europe/Paris")),
        ("day", pa.date64()),
        ("clock", pa.time32("s")),
        ("took", pa.duration("ms")),
        ("flag", pa.bool_()),
        ("tags", pa.list_(pa.string())),
        ("vec", pa.list_(pa.int16(), 2)),
        ("Mixed", pa.int32()),
        ("a.b", pa.int32()),
        ("order", pa.int32()),
        ("st", pa.struct([("x", pa.int32()), ("y", pa.struct([("Z", pa.string())]))])),
    ]
)
ROWS = {
    "id": [0, 1, 2],
    "i8": [-128, 127, None],
    "f16": [0.1, 2.0, None],
    "f32": [0.1, float("nan"), None],
    "name": ["it's", 'say "x"', None],
    "large": ["a", "b", None],
    "view": ["a", "b", None],
    "kind": ["a", "b", None],
    "raw": [b"\x00a", b"\xff", None],
    "four": [b"abcd", b"\x00\x00\x00\x01", None],
    "dec": [Decimal("123456789012345678901234567890123456.78"), Decimal("1.10"), None],
    "local": [dt.datetime(2020, 1, 1), dt.datetime(1960, 7, 1, 0, 0, 0, 1), None],
    "paris": [dt.datetime(2020, 1, 1), dt.datetime(2020, 7, 1), None],
    "day": [dt.date(2020, 1, 1), dt.date(1960, 1, 1), None],
    "clock": [dt.time(1, 2, 3), dt.time(23, 59, 59), None],
    "took": [dt.timedelta(milliseconds=5), dt.timedelta(days=1), None],
    "flag": [True, False, None],
    "tags": [["a", "b"], [], None],
    "vec": [[1, 2], [3, None], None],
    "Mixed": [1, 2, None],
    "a.b": [1, 2, None],
    "order": [1, 2, None],
    "st": [{"x": 1, "y": {"Z": "q"}}, {"x": None, "y": None}, None],
}


def column(name: str) -> pa.Array:
    kind = SCHEMA.field(name).type
    if name == "paris":  # the values in ROWS are in UTC
        return pa.array(ROWS[name], pa.timestamp("ns", "UTC")).cast(kind)
    return pa.array(ROWS[name]).cast(kind) if name == "kind" else pa.array(ROWS[name], kind)


TABLE = pa.table([column(name) for name in ROWS], schema=SCHEMA)


def matching(predicate: Predicate) -> list[int]:
    ids: list[int] = TABLE["id"].filter(predicate.mask(TABLE)).to_pylist()
    return ids


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # numbers outside the column's type, and between its values
        ("i8 < 128", [0, 1]),
        ("i8 >= 128", []),
        ("i8 != 1e30", [0, 1]),
        ("i8 > -128.5", [0, 1]),
        ("i8 < 126.5", [0]),
        ("NOT i8 = 0.5", [0, 1]),
        ("i8 IN (127, 300, 0.5)", [1]),
        ("dec = 123456789012345678901234567890123456.78", [0]),
        ("dec = 1.1", [1]),
        ("dec > 1.0999999999999999999999999999999999999999", [0, 1]),
        ("dec < '1.105'", [1]),
        # literals compared with floats are rounded to them
        ("f32 = 0.1", [0]),
        ("f16 = 0.1", [0]),
        ("f16 > 1e9", []),
        ("f32 > 1e39", [1]),
        # text
        ("name = 'it''s'", [0]),
        ('name = "it\'s"', [0]),
        ("name = 'say \"x\"'", [1]),
        ("large = 'b'", [1]),
        ("view IN ('a', 'c')", [0]),
        ("kind LIKE 'b%'", [1]),
        ("kind = 'a'", [0]),
        ("name || '!' = 'it''s!'", [0]),
        ("raw > X'61'", [1]),
        ("four = X'61626364'", [0]),
        ("four > X'00'", [0, 1]),
        ("four = X'00'", []),
        # time
        ("local = '2020-01-01'", [0]),
        ("local >= date '2020-01-01'", [0]),
        ("local < timestamp(9) '1960-07-01 00:00:00.000001001'", [1]),
        ("local > '0001-01-01T00:00:00'", [0, 1]),
        ("paris = '2020-01-01 01:00:00'", [0]),
        ("paris = '2020-01-01T00:00:00Z'", [0]),
        ("paris = timestamp '2020-07-01 02:00:00'", [1]),
        ("paris > '2020-01-01 02:00:00+02:00'", [1]),
        ("paris > local", [0, 1]),
        ("day = date '2020-01-01'", [0]),
        ("day < timestamp '2020-01-01 00:00:01'", [0, 1]),
        ("clock = '01:02:03'", [0]),
        ("clock < '01:02:03.5'", [0]),
        ("took > interval '1 hour'", [1]),
        ("date_part('year', paris) = 2020", [0, 1]),
        ("date_trunc('month', local) = '2020-01-01'", [0]),
        ("extract(month from local) = 7", [1]),
        # names
        ("MIXED = 1", [0]),
        ("`Mixed` = 1", [0]),
        ("`a.b` = 2", [1]),
        ("order = 1", [0]),
        ("st.y.z = 'q'", [0]),
        ("st['y']['Z'] = 'q'", [0]),
        ("`st`.`x` IS NULL", [1, 2]),
        ("st IS NULL", [2]),
        # lists
        ("array_has(tags, 'a')", [0]),
        ("NOT array_has(tags, 'a')", [1]),
        ("array_has_any(tags, ['b', 'z'])", [0]),
        ("array_has_all(tags, ['b', 'a'])", [0]),
        ("array_has(vec, 3)", [1]),
        ("array_has(vec, 1.5)", []),
        ("NOT array_has(vec, 1000000)", [0, 1]),
        ("array_has_any(vec, [1000000, 2])", [0]),
        ("array_has_all(vec, [1000000, 2])", []),
        ("array_has(vec, NULL) IS NULL", [0, 1, 2]),
        ("array_length(tags) = 0", [1]),
        ("tags[1] = 'a'", [0]),
        ("vec[-1] = 2", [0]),
        ("cardinality(vec) = 2", [0, 1]),
        # truth values
        ("flag", [0]),
        ("NOT flag", [1]),
        ("flag IS NOT TRUE", [1, 2]),
        ("flag IS UNKNOWN", [2]),
        ("flag = (i8 < 0)", [0, 1]),
        ("i8 = i8 IS TRUE", [0, 1]),
        ("i8 IS DISTINCT FROM 127", [0, 2]),
        ("i8 IS NOT DISTINCT FROM NULL", [2]),
        ("TRUE", [0, 1, 2]),
        ("i8 = NULL", []),
        ("flag AND NULL", []),
        ("flag OR NULL", [0]),
        # arithmetic, casts and functions
        ("i8 + 1 = 128", [1]),
        ("i8 * 1000 < -100000", [0]),
        ("-i8 = 128", [0]),
        ("i8 / 2 = 63", [1]),
        ("i8 % 2 = 1", [1]),
        ("i8 / 2.0 = 63.5", [1]),
        ("f16 % 2 > 0", [0]),
        ("CAST(i8 AS STRING) = '127'", [1]),
        ("TRY_CAST(name AS INT) IS NULL", [0, 1, 2]),
        ("CAST(dec AS DOUBLE) < 2", [1]),
        ("dec + 1 = 2.10", [1]),
        ("round(dec) = 1", [1]),
        ("ceil(dec) = 2", [1]),
        ("regexp_match(name, 'it')", [0]),
        ("NOT regexp_match(name, 'it')", [1, 2]),
        ("regexp_match(name, 'it') IS NULL", [1, 2]),
        ("CAST(1.7 AS INT) = 1 AND flag", [0]),
        ("coalesce(i8, 5) = 5", [2]),
        ("nullif(i8, 127) IS NULL", [1, 2]),
        ("upper(name) = 'IT''S'", [0]),
        ("length(name) = 4", [0]),
        ("octet_length('é') = 2 AND flag", [0]),
        ("concat(name, '!') = '!'", [2]),
        ("abs(id) = 2", [2]),
        ("round(f16) = 2", [1]),
        ("isnan(f32)", [1]),
        ("is_valid(i8)", [0, 1]),
        ("regexp_like(name, '^SAY', 'i')", [1]),
        ("regexp_match(name, '\\d')", []),
        ("name LIKE '%!_%' ESCAPE '!'", []),
        ("name NOT LIKE 'it%'", [1]),
        ("name ILIKE 'IT_S'", [0]),
    ],
)
def test_a_filter_selects_its_rows(text: str, expected: list[int]) -> None:
    predicate = parse_filter(text, SCHEMA)
    assert matching(predicate) == expected
    assert matching(parse_filter(predicate.to_sql(), SCHEMA)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nam = 'x'", "no column 'nam'; did you mean 'name'"),
        ("st.w = 1", "no column 'w' in 'st'; there are x, y"),
        ("id.x = 1", "column 'id' is int64 and has no field 'x'"),
        ("`mixed` = 1", "no column 'mixed'; did you mean 'Mixed'"),
        ("id", "id is int64, not a condition"),
        ("id + 1", "is int64, not a condition"),
        ("id = 'one'", "id is int64 and cannot be compared with 'one', which is string"),
        ("name = 1", "name is string and cannot be compared with 1"),
        ("flag = 1", "flag is bool and cannot be compared with 1"),
        ("local = 'noon'", "local is .* and cannot be compared with 'noon'"),
        ("local = '2020-01-01T00:00:00Z'", "local is .* and cannot be compared"),
        ("local = timestamp 'noon'", "'noon' is not a timestamp"),
        ("day = date 'noon'", "cannot be computed"),
        ("name = id", "do not compare"),
        ("name + 1 = 2", "name is string, and [+] needs numbers"),
        ("-name = 2", "needs a number"),
        ("id LIKE 'x'", "id is int64, and LIKE needs text"),
        ("lower(id) = 'x'", "lower cannot be called with"),
        ("lower(name, name) = 'x'", "lower cannot be called with"),
        ("starts_with(name) ", "starts_with takes 2 arguments"),
        ("regexp_like(name, '(')", "cannot be computed"),
        ("date_part('eon', local) = 1", "date_part takes year"),
        ("array_has_any(tags, [1, 'a'])", "items of different types"),
        ("id =", "does not parse"),
        ("DELETE FROM x", "does not parse"),
        ("id = 1 )", "does not parse"),
        ("", "holds 0 conditions"),
        ("id = 1; id = 2", "holds 2 conditions"),
        ("id IN ()", "the list is empty"),
        ("id = id = id", "reads in two ways"),
        ("\"name\" = 'x'", "write `name` in back quotes"),
        ("raw = X'6'", "not hexadecimal"),
        ("(" * 3000 + "flag" + ")" * 3000, "nested too deeply"),
    ],
)
def test_an_invalid_filter_is_refused_with_the_place_or_column(text: str, words: str) -> None:
    with pytest.raises(InvalidFilter, match=words):
        parse_filter(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pi() > id", "function pi"),
        ("id IN (SELECT 1)", "query"),
        ("EXISTS (SELECT 1)", "EXISTS"),
        ("id BETWEEN SYMMETRIC 2 AND 1", "symmetric"),
        ("name SIMILAR TO 'x'", "SIMILAR TO"),
        ("name LIKE kind", "LIKE with a pattern that is not a literal"),
        ("array_has(tags, name)", "array_has with an argument that is not a literal"),
        ("regexp_like(name, 'x', 'g')", "flags 'g'"),
        ("st = st", "comparison of struct"),
        ("dec / 2 = 1", "operator / on decimals"),
        ("CAST(id AS UUID) = 1", "type UUID"),
        ("took > interval '1 month'", "INTERVAL '1' MONTH"),
        ("array_has_any(tags, [name])", "items that are not literals"),
        ("*", r"\* in a filter"),
    ],
)
def test_an_unsupported_construct_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(UnsupportedFeature, match=words):
        parse_filter(text, SCHEMA)


def test_a_name_that_fits_several_columns_by_case_is_refused_with_the_choices() -> None:
    schema = pa.schema([("Id", pa.int64()), ("ID", pa.int32())])
    with pytest.raises(InvalidFilter, match="may be any of `Id`, `ID`"):
        parse_filter("id = 1", schema)
    assert parse_filter("ID = 1", schema).columns() == ("ID",)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("name LIKE 'a%'", StartsWith),
        ("name LIKE '%a'", EndsWith),
        ("name LIKE '%a%'", Contains),
        (r"name LIKE 'a\%b'", Compare),
        ("name LIKE 'a%b'", Like),
        ("name LIKE '%'", Like),
        ("name LIKE 'a_'", Like),
    ],
)
def test_like_becomes_the_simplest_equivalent_condition(text: str, kind: type[Predicate]) -> None:
    assert type(parse_filter(text, SCHEMA)) is kind


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id / (id - id) = 1", "divide by zero"),
        ("CAST(i8 * 2 AS TINYINT) = 1", "not in range"),
        ("-i8 + 9223372036854775807 > 0", "overflow"),
        ("abs(i8) = 1", "overflow"),
    ],
)
def test_a_value_that_cannot_be_computed_raises_invalid_input(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        parse_filter(text, SCHEMA).mask(TABLE)


@pytest.mark.parametrize(
    "name", ["comment", "Outer", "desc", "set", "show", "with", "order", "cross", "Call", "on", "use"]
)
def test_a_word_of_statements_names_a_column_or_a_struct(name: str) -> None:
    columns = pa.table({name: pa.array([{"x": 1}, {"x": 2}])})
    for text in (f"{name}.x = 2", f"{name}['x'] = 2", f"{name.lower()}.X = 2"):
        predicate = parse_filter(text, columns.schema)
        assert predicate.mask(columns).to_pylist() == [False, True]
        assert parse_filter(predicate.to_sql(), columns.schema) == predicate
    assert parse_filter(f"{name} IS NULL", columns.schema).mask(columns).to_pylist() == [False, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(number AS STRING)", ["0.0", "-0.0", "1e300", "0.00001234", "NaN"]),
        (
            "CAST(stamp AS STRING)",
            ["1970-01-01T00:00:00", "2020-01-02T03:04:05.600", "1969-12-31T23:59:59.999999", None, None],
        ),
        ("CAST(whole AS DECIMAL(4, 2))", [1.0, 2.0, -3.0, 0.0, None]),
        ("TRY_CAST(whole AS DECIMAL(4, 3))", [1.0, 2.0, -3.0, 0.0, None]),
        ("TRY_CAST(number AS DECIMAL(4, 2))", [0.0, 0.0, None, 0.0, None]),
        ("CAST(stamp AS BIGINT)", [0, 1577934245600000, -1, None, None]),
        ("concat(number, '!')", ["0.0!", "-0.0!", "1e300!", "0.00001234!", "NaN!"]),
        ("upper(text)", ["STRASSE", "FFİ", "É", "", None]),
        ("lower(text)", ["straße", "\ufb00i\u0307", "é", "", None]),
        ("regexp_match(text, '(t)(x)?(r)')", [["t", "r"], None, None, None, None]),
        ("regexp_match(text, '\\w$')", [["e"], ["İ"], ["É"], None, None]),
    ],
)
def test_an_expression_has_its_values(text: str, expected: list[Any]) -> None:
    rows = pa.record_batch(
        {
            "number": [0.0, -0.0, 1e300, 1.234e-5, math.nan],
            "whole": [1, 2, -3, 0, None],
            "stamp": pa.array([0, 1577934245600000, -1, None, None], pa.timestamp("us")),
            "text": ["Straße", "\ufb00İ", "É", "", None],
        }
    )
    values = parse_value(text, rows.schema).evaluate(rows).to_pylist()
    assert [float(value) if isinstance(value, Decimal) else value for value in values] == expected


def test_a_cast_to_decimal_refuses_what_its_digits_do_not_hold() -> None:
    rows = pa.record_batch({"whole": [1, 1000], "number": [1.0, math.nan]})
    for column in rows.schema.names:
        with pytest.raises((pa.ArrowInvalid, InvalidInput)):
            parse_value(f"CAST({column} AS DECIMAL(4, 2))", rows.schema).evaluate(rows)


def test_a_batch_without_the_column_raises_an_error_that_names_it() -> None:
    with pytest.raises(InvalidInput, match="needs column 'id'"):
        parse_filter("id = 1", SCHEMA).mask(TABLE.select(["i8"]))


def test_columns_returns_paths_that_a_projection_takes() -> None:
    predicate = parse_filter("st.y.z = 'q' AND `a.b` > 1 AND (Mixed = 1 OR st.y.z = 'r')", SCHEMA)
    assert predicate.columns() == ("st.y.Z", "`a.b`", "Mixed")


def test_a_constant_filter_masks_every_row() -> None:
    assert parse_filter("1 = 1", SCHEMA).mask(TABLE).to_pylist() == [True] * 3
    assert parse_filter("NULL", SCHEMA).mask(TABLE.to_batches()[0]).to_pylist() == [None] * 3
    assert len(parse_filter("i8 > 0", SCHEMA).mask(TABLE.slice(0, 0))) == 0


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_every_nan_is_in_a_list_that_has_a_nan(kind: pa.DataType) -> None:
    with_sign_bit = {pa.float32(): -(1 << 22), pa.float64(): -(1 << 51)}[kind]
    bits = pa.array([with_sign_bit], pa.int32() if kind == pa.float32() else pa.int64())
    values = pa.concat_arrays([bits.view(kind), pa.array([float("nan"), 1.0, -0.0, 2.0, None], kind)])
    predicate = parse_filter("x IN (CAST('NaN' AS DOUBLE), 1.0, 0.0)", pa.schema([("x", kind)]))
    assert predicate.mask(pa.table({"x": values})).to_pylist() == [True, True, True, True, False, None]


def test_a_predicate_can_be_bound_to_another_schema() -> None:
    predicate = parse_filter("i8 = 127", SCHEMA)
    assert parse_filter(predicate, SCHEMA) is predicate
    wider = pa.schema([("i8", pa.int32())])
    assert parse_filter(predicate, wider).mask(pa.table({"i8": [127]}, schema=wider)).to_pylist() == [True]
    with pytest.raises(InvalidFilter, match="no column 'i8'"):
        parse_filter(predicate, pa.schema([("id", pa.int8())]))


def test_a_filter_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="not int"):
        parse_filter(1, SCHEMA)


WHOLE = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(WHOLE, min_size=1, max_size=8), WHOLE.filter(bool), st.booleans())
def test_a_remainder_has_the_sign_of_the_dividend(numbers: list[int], divisor: int, with_null: bool) -> None:
    columns = {"id": pa.array([*numbers, None] if with_null else numbers, pa.int64())}
    batch = pa.record_batch({**columns, "divisor": pa.array([divisor] * len(columns["id"]), pa.int64())})
    found = [parse_value(text, batch.schema).evaluate(batch) for text in (f"id % {divisor}", "id % divisor")]
    expected = [number - divisor * int(Fraction(number, divisor)) for number in numbers]
    for remainders in found:
        assert remainders.to_pylist() == [*expected, *([None] if with_null else [])]


@given(st.lists(st.sampled_from([True, False, None]), max_size=40), st.integers(0, 9), st.integers(1, 30))
def test_true_mask_is_true_only_where_the_predicate_is_true(truths: list[bool | None], offset: int, chunk: int) -> None:
    flags = pa.table({"flag": pa.array(truths, pa.bool_())})
    table = pa.Table.from_batches(flags.to_batches(max_chunksize=chunk), flags.schema).slice(offset)
    predicate = parse_filter("flag", table.schema)
    assert predicate.true_mask(table).tolist() == [truth is True for truth in truths[offset:]]
    for batch in table.to_batches():
        assert predicate.true_mask(batch).tolist() == [truth is True for truth in batch.column(0).to_pylist()]


@pytest.mark.parametrize(
    ("texts", "most_casts"),
    [
        ([str(row) if row != 777 else "none" for row in range(10_000)], 50),
        ([str(row) if row % 10 else "n/a" for row in range(10_000)], 50),
        ([f"n/a {row}" for row in range(1_000)], 1_500),
    ],
)
def test_a_lenient_cast_tries_again_only_what_does_not_fit(
    texts: list[str], most_casts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(values: Any, target: pa.DataType) -> Any:
        made.append(len(values))
        return cast_values(values, target)

    monkeypatch.setattr(casts, "cast_values", counted)
    cast = casts.cast_each(pa.array([*texts, None]), pa.int64())
    assert cast.to_pylist() == [*(int(text) if text.isdecimal() else None for text in texts), None]
    assert len(made) <= most_casts


def test_a_lenient_cast_of_numbers_keeps_those_that_fit() -> None:
    numbers = pa.array([0.5, math.nan, None, 1e300, -7.0, *range(20)])
    cast = parse_value("TRY_CAST(x AS INT)", pa.schema([("x", pa.float64())]))
    assert cast.evaluate(pa.record_batch({"x": numbers})).to_pylist() == [0, None, None, None, -7, *range(20)]


_SENTINELS = {  # the first and the last second of the years 1 to 9999, and the least and the greatest nanosecond
    "s": [-62_135_596_800, 253_402_300_799, 0, 0, -1, -2, 1, None, 0],
    "ns": [-(2**63), 2**63 - 1, 1, 0, -1, -(10**9), -1, 0, None],
}


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    ("coarse", "fine"),
    [
        (pa.timestamp("s"), pa.timestamp("ns")),
        (pa.timestamp("s", "UTC"), pa.timestamp("ns", "Europe/Paris")),
        (pa.timestamp("s", "UTC"), pa.timestamp("ns")),
        (pa.timestamp("ms"), pa.timestamp("ns")),
        (pa.duration("s"), pa.duration("ns")),
        (pa.duration("us"), pa.duration("ns")),
    ],
)
def test_instants_compare_also_beyond_the_range_of_the_finer_unit(
    coarse: pa.DataType, fine: pa.DataType, op: str
) -> None:
    length = {"s": 10**9, "ms": 10**6, "us": 10**3}[coarse.unit]
    ticks = [None if second is None else second * 10**9 // length for second in _SENTINELS["s"]]
    rows = pa.record_batch({"a": pa.array(ticks, coarse), "b": pa.array(_SENTINELS["ns"], fine)})
    known = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[op]
    expected = [
        None if left is None or right is None else getattr(left * length, known)(right)
        for left, right in zip(ticks, _SENTINELS["ns"], strict=True)
    ]
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    assert parse_filter(f"a {op} b", rows.schema).mask(rows).to_pylist() == expected
    assert parse_filter(f"b {mirrored} a", rows.schema).mask(rows).to_pylist() == expected


def test_days_compare_with_nanoseconds_of_other_centuries() -> None:
    days = pa.array([dt.date(9999, 12, 31), dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(1970, 1, 1)])
    rows = pa.record_batch({"day": days, "at": pa.array([0, 0, -1, 0], pa.timestamp("ns"))})
    assert parse_filter("day > at", rows.schema).mask(rows).to_pylist() == [True, False, True, False]
    assert parse_filter("day = at", rows.schema).mask(rows).to_pylist() == [False, False, False, True]


@pytest.mark.parametrize("ticks", [2**63 - 1, -(2**63), 10**13, 5, 0, -1])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_duration_of_any_length_survives_a_round_trip_through_sql(unit: str, ticks: int) -> None:
    rows = pa.record_batch({"d": pa.array([ticks, ticks, None, 1], pa.duration(unit))})
    column, value = pc.field("d"), rows["d"][0]
    for condition in (column == value, column < value, column.isin(rows["d"])):
        predicate = parse_filter(condition, rows.schema)
        again = parse_filter(predicate.to_sql(), rows.schema)
        assert again == predicate
        assert again.mask(rows).to_pylist() == predicate.mask(rows).to_pylist()

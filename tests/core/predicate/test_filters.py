"""SQL filters select the expected rows, and become the simplest predicates that do."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.errors import InvalidFilter
from lance_ops.core.predicate import Compare, Contains, EndsWith, Like, Predicate, StartsWith, parse_filter
from tests.core.predicate.filtered_table import SCHEMA, TABLE, matching


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
    "name", ["comment", "Outer", "desc", "set", "show", "with", "order", "cross", "Call", "on", "use"]
)
def test_a_word_of_statements_names_a_column_or_a_struct(name: str) -> None:
    columns = pa.table({name: pa.array([{"x": 1}, {"x": 2}])})
    for text in (f"{name}.x = 2", f"{name}['x'] = 2", f"{name.lower()}.X = 2"):
        predicate = parse_filter(text, columns.schema)
        assert predicate.mask(columns).to_pylist() == [False, True]
        assert parse_filter(predicate.to_sql(), columns.schema) == predicate
    assert parse_filter(f"{name} IS NULL", columns.schema).mask(columns).to_pylist() == [False, False]


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


@given(st.lists(st.sampled_from([True, False, None]), max_size=40), st.integers(0, 9), st.integers(1, 30))
def test_true_mask_is_true_only_where_the_predicate_is_true(truths: list[bool | None], offset: int, chunk: int) -> None:
    flags = pa.table({"flag": pa.array(truths, pa.bool_())})
    table = pa.Table.from_batches(flags.to_batches(max_chunksize=chunk), flags.schema).slice(offset)
    predicate = parse_filter("flag", table.schema)
    assert predicate.true_mask(table).tolist() == [truth is True for truth in truths[offset:]]
    for batch in table.to_batches():
        assert predicate.true_mask(batch).tolist() == [truth is True for truth in batch.column(0).to_pylist()]

"""Text that is not a supported filter, or that a table cannot answer, raises the expected error."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_ops.core.errors import InvalidFilter, InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import parse_filter
from tests.core.predicate.filtered_table import SCHEMA, TABLE


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


def test_a_batch_without_the_column_raises_an_error_that_names_it() -> None:
    with pytest.raises(InvalidInput, match="needs column 'id'"):
        parse_filter("id = 1", SCHEMA).mask(TABLE.select(["i8"]))


def test_a_filter_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="not int"):
        parse_filter(1, SCHEMA)

"""JSON functions return parts of JSONB documents, found by path or key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_ops.core.errors import InvalidFilter, InvalidInput, UnsupportedFeature
from lance_ops.core.json.jsonb import encode
from lance_ops.core.json.jsonb_path import parse_path
from lance_ops.core.predicate import parse_filter
from lance_ops.core.predicate.assignment import parse_value

DOCUMENTS = ['{"a":{"b c":[1,{"d":"x"}],"é":null}}', '["y",null,{"0":2}]', "7", None, '{"0":{"b c":true}}']
ROWS = pa.record_batch({"j": pa.array([d and encode(d) for d in DOCUMENTS], pa.large_binary())})


def values(text: str) -> list[object]:
    found: list[object] = parse_value(text, ROWS.schema).evaluate(ROWS).to_pylist()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("json_extract(j, '$')", [*DOCUMENTS]),
        ("json_extract(j, '')", [*DOCUMENTS]),
        ("json_extract(j, '$.a.\"b c\"[1].d')", ['"x"', None, None, None, None]),
        ("json_extract(j, 'a[\"é\"]')", ["null", None, None, None, None]),
        ("json_exists(j, '$.a.é')", [True, False, False, None, False]),
        ("json_extract(j, '[2][\"0\"]')", [None, "2", None, None, None]),
        ("json_extract(j, '$[-1]')", [None] * 5),
        ("json_array_length(j, '$')", [0, 3, 0, None, 0]),
        ("json_array_length(j, '$.a.\"b c\"')", [2, None, None, None, None]),
        ("json_array_contains(j, '$', 'y')", [False, True, False, None, False]),
        ("json_array_contains(j, '$.a.\"b c\"', 1)", [True, False, False, None, False]),
        ("json_array_contains(j, '$', NULL)", [None] * 5),
        ("json_get_string(j, 1)", [None] * 5),
        ("json_get_bool(json_get(j, '0'), 'b c')", [None, None, None, None, True]),
        ("json_get_int(json_get(j, '2'), '0')", [None, 2, None, None, None]),
        ("json_get_float(json_get(j, 2), 0)", [None, 2.0, None, None, None]),
        ("json_get(j, NULL)", [None] * 5),
    ],
)
def test_json_functions_return_the_values_at_a_path_or_key(text: str, expected: list[object]) -> None:
    assert values(text) == expected


def test_conditions_on_documents_select_rows_and_survive_a_round_trip_through_sql() -> None:
    predicate = parse_filter("json_exists(j, '$.a') OR json_extract(j, '$[0]') = '\"y\"'", ROWS.schema)
    assert predicate.mask(ROWS).to_pylist() == [True, True, None, None, None]
    assert parse_filter(predicate.to_sql(), ROWS.schema) == predicate


@pytest.mark.parametrize("path", ["$.*", "$[*]", "$..a", "$[1 to 2]", "$[last]", "$.a ? (@ > 1)", "$.", "$[x]", "a b"])
def test_path_steps_other_than_names_and_positions_are_refused(path: str) -> None:
    with pytest.raises(UnsupportedFeature, match="JSON path"):
        parse_path(path)


def test_corrupt_documents_and_wrong_arguments_raise_errors_that_name_the_function() -> None:
    rows = pa.record_batch({"j": pa.array([b"\x00\x01"], pa.large_binary())})
    with pytest.raises(InvalidInput, match="json_exists.*1 entries in 2 bytes"):
        parse_filter("json_exists(j, '$.a')", rows.schema).mask(rows)
    with pytest.raises(InvalidFilter, match="json_extract cannot be called with"):
        parse_value("json_extract(j, 1)", ROWS.schema)
    with pytest.raises(UnsupportedFeature, match="not a literal"):
        parse_value("json_get(j, json_extract(j, '$'))", ROWS.schema)


@pytest.mark.parametrize(
    ("number", "as_int", "as_float"),
    [
        ("1e9999999", None, float("inf")),
        ("-1e9999999", None, float("-inf")),
        ("1e99999999999999999999999", None, float("inf")),
        ("9223372036854775807.4", 2**63 - 1, 2.0**63),
        ("9223372036854775807.5", None, 2.0**63),
        ("1e19", None, 1e19),
        ("-9.223372036854775808e18", -(2**63), -(2.0**63)),
        ("1e-9999999", 0, 0.0),
        ("1e-99999999999999999999999", 0, 0.0),
        ("0e9999999", 0, 0.0),
        ("0e99999999999999999999999", 0, 0.0),
    ],
)
def test_a_number_of_any_exponent_is_an_integer_or_an_error_and_a_float(
    number: str, as_int: int | None, as_float: float
) -> None:
    rows = pa.record_batch({"j": pa.array([encode(f'{{"a":"{number}"}}')], pa.large_binary())})
    assert parse_value("json_get_float(j, 'a')", rows.schema).evaluate(rows).to_pylist() == [as_float]
    if as_int is not None:
        assert parse_value("json_get_int(j, 'a')", rows.schema).evaluate(rows).to_pylist() == [as_int]
        return
    with pytest.raises(InvalidInput, match="is not a 64-bit integer"):
        parse_filter("json_get_int(j, 'a') = 1", rows.schema).mask(rows)

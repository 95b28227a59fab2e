"""JSON functions find parts of documents in their bytes."""

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
def test_a_path_or_a_key_leads_to_a_part(text: str, expected: list[object]) -> None:
    assert values(text) == expected


def test_conditions_on_documents_choose_rows_and_are_spelled_as_they_were_written() -> None:
    predicate = parse_filter("json_exists(j, '$.a') OR json_extract(j, '$[0]') = '\"y\"'", ROWS.schema)
    assert predicate.mask(ROWS).to_pylist() == [True, True, None, None, None]
    assert parse_filter(predicate.to_sql(), ROWS.schema) == predicate


@pytest.mark.parametrize("path", ["$.*", "$[*]", "$..a", "$[1 to 2]", "$[last]", "$.a ? (@ > 1)", "$.", "$[x]", "a b"])
def test_other_steps_than_names_and_numbers_are_refused(path: str) -> None:
    with pytest.raises(UnsupportedFeature, match="JSON path"):
        parse_path(path)


def test_bytes_that_are_no_document_are_an_error_that_names_the_filter() -> None:
    rows = pa.record_batch({"j": pa.array([b"\x00\x01"], pa.large_binary())})
    with pytest.raises(InvalidInput, match="json_exists.*1 entries in 2 bytes"):
        parse_filter("json_exists(j, '$.a')", rows.schema).mask(rows)
    with pytest.raises(InvalidFilter, match="json_extract cannot be called with"):
        parse_value("json_extract(j, 1)", ROWS.schema)
    with pytest.raises(UnsupportedFeature, match="not a literal"):
        parse_value("json_get(j, json_extract(j, '$'))", ROWS.schema)

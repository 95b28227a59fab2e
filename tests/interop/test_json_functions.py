"""JSON functions give what the reference's give, and raise where they do."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import InvalidInput

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

DOCUMENTS = [
    '{"a":1,"b":"x","c":[1,"x",null,{"z":2}],"d":{"e":1.5,"f":true},"n":null}',
    '[1,2,"x"]',
    '"text"',
    "42",
    "true",
    "null",
    None,
    '{"a":"1","b":5,"d":{"e":"2.5","f":"false"},"c":[],"weird key":3}',
    '{"a":9007199254740993,"d":{"e":1e30}}',
    '{"a":1.9,"b":true,"c":{"k":1}}',
]
EXPRESSIONS = [
    *(
        f"json_extract(j, '{path}')"
        for path in ("$", "", "a", "$.a", "d.e", "$.d .e", "$.c[1]", "c[3].z", "$[1]", "$.n", '$["weird key"]', '$."b"')
    ),
    *(f"json_exists(j, '{path}')" for path in ("$.a", "$.n", "$.c[5]", "$.d.f", "", "b", "$.c[3].z")),
    *(f"json_get(j, {key})" for key in ("'a'", "'1'", "'d'", "0", "'01'", "'-1'", "'weird key'")),
    *(f"json_get_string(j, '{key}')" for key in ("a", "b", "n", "1", "weird key")),
    *(f"json_get_int(j, '{key}')" for key in ("a", "1", "n", "zz")),
    *(f"json_get_float(j, '{key}')" for key in ("a", "0", "n")),
    "json_get_float(json_get(j, 'd'), 'e')",
    "json_get_bool(json_get(j, 'd'), 'f')",
    "json_get(json_get(j, 'd'), 'e')",
    *(f"json_array_contains(j, '$.c', {value})" for value in ("'x'", "'1'", "1", "2", "'1.0'", "'null'", "true")),
    """json_array_contains(j, '$.c', '{"z":2}')""",
    "json_array_contains(j, '$', 'x')",
    "json_array_contains(j, '$.c[1]', 'x')",
    *(f"json_array_length(j, '{path}')" for path in ("$.c", "$", "$.a", "$.zz")),
]
VALUES = [
    *("1", "0", "1.9", "-1.5", "2.5", "0.5", "-0.5", "true", "false", "null", "[]", "{}", "1e30", "1e3", "100.0"),
    *('"1"', '"2.5"', '" 7 "', '"x"', '""', '"true"', '"TRUE"', '"False"', '"1e3"', '"+5"', '"nan"', '"inf"', '"1_0"'),
    *("9223372036854775807", "9223372036854775808", "18446744073709551615", "-9223372036854775808"),
]


def both(tmp_path_factory: pytest.TempPathFactory, documents: list[str | None]) -> tuple[Any, Any]:
    uri = str(tmp_path_factory.mktemp("json") / "t")
    lance.write_dataset(pa.table({"id": range(len(documents)), "j": pa.array(documents, pa.json_())}), uri)
    return lance_ops.dataset(uri), lance.dataset(uri)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    return both(tmp_path_factory, DOCUMENTS)


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    return both(tmp_path_factory, [f'{{"a":{value}}}' for value in VALUES])


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_json_functions_return_what_the_reference_s_return(documents: tuple[Any, Any], expression: str) -> None:
    mine, other = (dataset.to_table({"x": expression}).column("x") for dataset in documents)
    assert mine.type == other.type
    assert mine.to_pylist() == other.to_pylist()


@pytest.mark.parametrize("kind", ["string", "int", "float", "bool"])
def test_json_values_convert_to_other_types_as_in_the_reference(values: tuple[Any, Any], kind: str) -> None:
    ours, theirs = values
    for row, value in enumerate(VALUES):
        asked: dict[str, Any] = {"columns": {"x": f"json_get_{kind}(j, 'a')"}, "filter": f"id = {row}"}
        try:
            (expected,) = theirs.to_table(**asked)["x"].to_pylist()
        except (ValueError, OSError):
            with pytest.raises(InvalidInput, match="json_get"):
                ours.to_table(**asked)
            continue
        (found,) = ours.to_table(**asked)["x"].to_pylist()
        assert type(found) is type(expected), value
        assert found == expected or (math.isnan(found) and math.isnan(expected)), value


@pytest.mark.parametrize(
    "condition",
    ["json_get_int(j, 'a') > 1", "json_exists(j, '$.c') AND id > 0", "json_extract(j, '$.d.e') IS NOT NULL"],
)
def test_filters_on_documents_choose_the_reference_s_rows(documents: tuple[Any, Any], condition: str) -> None:
    mine, other = (dataset.to_table(["id"], condition) for dataset in documents)
    assert 0 < mine.num_rows < len(DOCUMENTS)
    assert mine == other

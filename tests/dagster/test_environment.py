from __future__ import annotations

import pytest

from lance_ops.dagster.declaration.environment import expand, expand_all, expand_location
from lance_ops.errors import ConfigError

pytestmark = pytest.mark.dagster


def test_variables_and_defaults_are_replaced() -> None:
    environment = {"LAKE": "s3://lake", "EMPTY": ""}
    assert expand("${LAKE}/a/${NAME:-b}${EMPTY}", "uri", environment) == "s3://lake/a/b"


def test_a_set_variable_wins_over_its_default_even_if_empty() -> None:
    assert expand("[${EMPTY:-x}]", "uri", {"EMPTY": ""}) == "[]"


def test_text_without_variables_stays() -> None:
    assert expand("/data/$HOME/{x}", "uri", {}) == "/data/$HOME/{x}"


def test_a_value_is_not_expanded_again() -> None:
    assert expand("${A}", "uri", {"A": "${B}", "B": "x"}) == "${B}"


def test_a_missing_variable_names_itself_and_the_key_and_no_other_value() -> None:
    with pytest.raises(ConfigError, match=r"storage_options\.secret: .*MISSING") as caught:
        expand_all({"secret": "${SET}-${MISSING}"}, "storage_options", {"SET": "hunter2"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("${LAKE}/orders/", "s3://lake/orders"),
        ("${EMPTY:-}/orders", "/orders"),
        ("/data${EMPTY}/orders", "/data/orders"),
        ("/", "/"),
    ],
)
def test_a_location_has_its_variables_expanded_and_no_slash_at_its_end(written: str, place: str) -> None:
    assert expand_location(written, "uri", {"LAKE": "s3://lake", "EMPTY": ""}) == place


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("${EMPTY}/orders", "raw.uri: environment variable EMPTY is empty"),
        ("${EMPTY:-/lake}/orders", "raw.uri: environment variable EMPTY is empty"),
        ("${MISSING}/orders", "raw.uri: environment variable MISSING is not set"),
        ("", "raw.uri: is empty"),
        ("${EMPTY:-}", "raw.uri: is empty"),
        ("/data/\0", "raw.uri: has a NUL"),
        ("${LAKE/orders", r"raw.uri: \$\{ must be followed by a name"),
        ("/data/${MY-LAKE}", r"raw.uri: \$\{ must be followed by a name"),
    ],
)
def test_an_error_about_a_location_names_its_key(written: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        expand_location(written, "raw.uri", {"EMPTY": ""})

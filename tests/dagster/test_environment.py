from __future__ import annotations

import pytest

from lance_ops.dagster.declaration.environment import expand, expand_all
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

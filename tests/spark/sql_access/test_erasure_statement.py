"""`sql`: ERASE removes rows from every version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from tests.spark.sql_access.shown_rows import first, stored

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "condition", ["id >= 8 AND s IN ('a', 'b')", "numbers.id IN (SELECT id FROM numbers WHERE id + x > 15)"]
)
def test_rows_go_from_every_version_with_a_record(run: Any, lake: Path, condition: str) -> None:
    numbers = LanceDataset(lake / "numbers.lance")
    numbers.update({"x": "0"}, "id = 1")
    run("CREATE TAG first ON numbers VERSION AS OF 1")
    text = f"ERASE FROM numbers REASON 'ticket 12' WITH (remove_tags = true) WHERE {condition}"
    with pytest.raises(InvalidInput, match="first"):
        run(text.replace("true", "false"))
    with pytest.raises(InvalidInput, match="at_most_rows"):
        run(text.replace("remove_tags = true", "remove_tags = true, at_most_rows = 1"))
    assert len(stored(lake)) == 10
    found = first(run(text))
    assert (found["num_erased_rows"], found["is_proven"], found["unproven"]) == (2, True, [])
    record = json.loads((lake / "numbers.lance" / found["record"]).read_text())
    assert (record["reason"], record["erased_rows"]) == ("ticket 12", 2)
    assert [row[0] for row in stored(lake)] == [*range(8)]
    assert {each["version"] for each in LanceDataset(lake / "numbers.lance").versions()}.isdisjoint({1, 2})


def test_a_statement_that_erases_nothing_for_certain_changes_nothing(run: Any, lake: Path) -> None:
    for text, error, message in (
        ("ERASE FROM numbers WHERE id = 1", InvalidInput, "REASON is needed"),
        ("ERASE FROM numbers REASON 'r'", InvalidInput, "WHERE is needed in place of the end"),
        ("ERASE FROM numbers REASON r WHERE id = 1", InvalidInput, "a text in quotes"),
        ("ERASE FROM numbers REASON ' ' WHERE id = 1", InvalidInput, "reason is empty"),
        ("ERASE FROM numbers REASON 'r' WITH (force = true) WHERE id = 1", InvalidInput, "no option 'force'"),
        ("ERASE FROM numbers REASON 'r' WHERE id + x > 5", UnsupportedFeature, "key IN .SELECT key FROM numbers"),
        ("ERASE FROM numbers REASON 'r' WHERE nope = 1", AnalysisException, "nope"),
    ):
        with pytest.raises(error, match=message):
            run(text)
    assert LanceDataset(lake / "numbers.lance").version == 1

"""`sql`: SHOW DUPLICATES and DELETE DUPLICATES."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.spark import OnSpark, sql
from tests.spark.sql_access.shown_rows import first, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def repeated(lake: Path) -> LanceDataset:
    """A table `seen`, in which the key (1, "a") has three rows, (2, "b") has two and (3, None) none that is equal."""
    rows = {"Id": [1, 2, 1, 1, 2, 3, 3], "s": ["a", "b", "a", "a", "b", None, None], "n": [*range(7)]}
    return write_dataset(pa.table(rows), lake / "seen.lance", max_rows_per_file=3)


def test_duplicates_are_counted_with_the_most_frequent_keys(run: Any, repeated: LanceDataset) -> None:
    frequent = [{"key": {"Id": "1", "s": "a"}, "num_rows": 3}, {"key": {"Id": "2", "s": "b"}, "num_rows": 2}]
    found = first(run("SHOW DUPLICATES IN seen ON (id, s)"))
    assert found == {"num_keys": 2, "num_rows": 5, "num_surplus_rows": 3, "examples": frequent}
    assert first(run("SHOW DUPLICATES FROM seen ON id, s WITH (examples = 1)"))["examples"] == frequent[:1]
    some = first(run("SHOW DUPLICATES IN seen ON (id, s) WHERE n >= 3 OR n = 1 WITH (examples = 0)"))
    assert some == {"num_keys": 1, "num_rows": 2, "num_surplus_rows": 1, "examples": []}
    assert first(run("SHOW DUPLICATES IN seen ON (n)"))["num_keys"] == 0
    assert first(run("SHOW DUPLICATES IN seen ON (id, s, ID)")) == found


@pytest.mark.parametrize(
    ("keep", "kept"), [("", [0, 1, 5, 6]), (" KEEP FIRST", [0, 1, 5, 6]), (" KEEP LAST", [3, 4, 5, 6])]
)
def test_all_rows_of_a_key_but_one_are_deleted(
    run: Any, lake: Path, repeated: LanceDataset, keep: str, kept: list[int]
) -> None:
    text = f"DELETE DUPLICATES FROM seen ON (id, s){keep}"
    assert first(run(f"{text} DRY RUN")) == {"num_affected_rows": 3}
    assert len(stored(lake, "seen")) == 7
    assert first(run(text)) == {"num_affected_rows": 3}
    assert sorted(row[2] for row in stored(lake, "seen")) == kept
    assert first(run(text)) == {"num_affected_rows": 0}
    assert LanceDataset(repeated.uri).version == 2


def test_a_wrong_statement_changes_nothing(run: Any, repeated: LanceDataset) -> None:
    for text, message in (
        ("DELETE DUPLICATES FROM seen", "ON is needed in place of the end"),
        ("DELETE DUPLICATES FROM seen ON (nope)", "nope"),
        ("DELETE DUPLICATES FROM seen ON (id) KEEP SOME", "FIRST or LAST is needed in place of 'SOME'"),
        ("DELETE DUPLICATES FROM seen ON (id) WHERE n = 1", "the end of the statement is needed in place of 'WHERE'"),
        ("DELETE DUPLICATES IN seen ON (id)", "FROM is needed in place of 'IN'"),
        ("DELETE DUPLICATES FROM nowhere ON (id)", "nowhere is no Lance table"),
        ("SHOW DUPLICATES seen ON (id)", "IN or FROM is needed in place of 'seen'"),
        ("SHOW DUPLICATES IN seen ON (id) WITH (keep = 1)", "SHOW DUPLICATES has no option 'keep'"),
        ("SHOW DUPLICATES IN seen ON (id) WITH (examples = -1)", "a whole number for examples"),
    ):
        with pytest.raises(InvalidInput, match=message):
            run(text)
    with pytest.raises(UnsupportedFeature, match=r"WHERE n \+ 1 = 2"):
        run("SHOW DUPLICATES IN seen ON (id) WHERE n + 1 = 2")
    assert LanceDataset(repeated.uri).version == 1


def test_the_keys_are_compared_on_the_workers(spark: SparkSession, repeated: LanceDataset) -> None:
    jobs: list[str] = []

    class Recording(OnSpark):
        def map(self, function: Any, tasks: Any, job: Any = None, discard: Any = None) -> Any:
            jobs.append(str(job))
            return super().map(function, tasks, job, discard)

    for text in ("SHOW DUPLICATES IN seen ON (n)", "DELETE DUPLICATES FROM seen ON (n)"):
        sql(spark, text, runner=Recording(spark, least_bytes=0))
    assert jobs == ["compare keys of seen v1"] * 2

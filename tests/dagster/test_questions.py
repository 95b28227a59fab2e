"""A run answers a question about rows with a few numbers, on the run's runner, and changes nothing."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from pydantic import ValidationError

from lance_ops.api import write_dataset
from lance_ops.dagster.ops.questions import Count, Duplicates, Statistics
from tests.dagster.deployment import Deploy, Deployment, output_metadata

pytestmark = pytest.mark.dagster


@pytest.fixture
def filled(deploy: Deploy) -> Deployment:
    """Rows 0 to 9 in version 1, and again in version 2."""
    deployment = deploy(indices=[])
    deployment.fill(1)
    deployment.data.insert(deployment.data.to_table())
    return deployment


def answer(deployment: Deployment, what: str, config: dg.Config | None = None) -> dict[str, Any]:
    version = deployment.data.version
    found = output_metadata(deployment.run(what, config))
    assert deployment.data.version == version and found["lance/new_versions"] == "none"
    return found


@pytest.mark.parametrize(
    ("asked", "num_rows", "version"),
    [
        (None, 20, 2),
        (Count(predicate="id < 3"), 6, 2),
        (Count(predicate="id < 3", version=1), 3, 1),
        (Count(predicate="id > 99"), 0, 2),
    ],
)
def test_rows_are_counted(filled: Deployment, asked: Count | None, num_rows: int, version: int) -> None:
    found = answer(filled, "count", asked)
    assert (found["lance/num_rows"], found["lance/read_version"]) == (num_rows, version)


def test_columns_are_measured(filled: Deployment) -> None:
    found = answer(filled, "statistics", Statistics(predicate="id >= 4"))
    assert found["lance/num_rows"] == 12 and found["lance/columns_left_out"] == 0
    assert found["lance/columns"]["id"] == {"num_nulls": 0, "min": "4", "max": "9", "num_distinct": 6}
    assert "| city | 0 | Bern | Bern | 1 |" in found["lance/statistics"]
    assert answer(filled, "statistics", Statistics(columns=["id"], version=1))["lance/columns"].keys() == {"id"}


def test_rows_of_a_table_without_a_measured_column_are_counted(filled: Deployment) -> None:
    lists = pa.table({"id": pa.array([[1], [2], [3]], pa.list_(pa.int64()))})
    write_dataset(lists, filled.config.uri, mode="overwrite")
    found = answer(filled, "statistics")
    assert (found["lance/columns"], found["lance/num_rows"]) == ({}, 3)


def test_rows_with_equal_keys_are_counted(filled: Deployment) -> None:
    found = answer(filled, "duplicates", Duplicates(on=["id"], examples=3))
    assert [found[f"lance/{name}"] for name in ("num_keys", "num_rows", "num_surplus_rows")] == [10, 20, 10]
    assert found["lance/examples"].count("\n") == 1 + 3
    once = answer(filled, "duplicates", Duplicates(on=["id"], version=1))
    assert once["lance/num_keys"] == 0


@pytest.mark.parametrize(
    ("what", "asked", "reason"),
    [
        ("count", Count(predicate="nothing = 1"), "nothing"),
        ("statistics", Statistics(columns=["none"]), "none"),
        ("duplicates", Duplicates(on=["none"]), "none"),
        ("count", Count(version=9), "version 9"),
    ],
)
def test_a_question_that_makes_no_sense_fails_and_says_why(
    filled: Deployment, what: str, asked: dg.Config, reason: str
) -> None:
    with pytest.raises(dg.Failure, match=reason):
        filled.run(what, asked)


def test_a_key_has_at_least_one_column() -> None:
    with pytest.raises(ValidationError, match="at least 1"):
        Duplicates(on=[])


def test_questions_do_not_wait_for_writers(filled: Deployment) -> None:
    for what in ("count", "statistics", "duplicates"):
        (op,) = filled.location.definitions.resolve_job_def(filled.names.of(what)).graph.node_defs
        assert isinstance(op, dg.OpDefinition) and op.pool is None
        assert op.required_resource_keys == {"lance_runner"}

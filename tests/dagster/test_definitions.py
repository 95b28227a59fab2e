from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pytest
from typer.core import TyperGroup
from typer.main import get_command

from lance_ops.cli import app
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.fleet.declared_fleet import FleetConfig
from lance_ops.dagster.fleet.definitions import build_fleet_definitions
from lance_ops.dagster.runners.runner import RUNNER_KEY, ThreadRunner
from lance_ops.verbs import ALL_VERBS
from tests.dagster.deployment import Deployment

pytestmark = pytest.mark.dagster


def definitions(*declared: Mapping[str, object]) -> dg.Definitions:
    resources = dg.Definitions(resources={RUNNER_KEY: ThreadRunner()})
    return dg.Definitions.merge(*[build_definitions(DatasetConfig.model_validate(d)) for d in declared], resources)


def test_a_dataset_has_two_nodes_of_which_one_is_partitioned(deployment: Deployment) -> None:
    graph = deployment.location.definitions.resolve_asset_graph()
    head, batches = graph.get(deployment.names.head), graph.get(deployment.names.batches)
    assert batches.partitions_def == deployment.names.partitions
    assert batches.backfill_policy == dg.BackfillPolicy.single_run()
    assert head.partitions_def is None and not head.is_materializable
    assert head.parent_keys == {batches.key}


def test_a_dataset_without_a_landing_folder_has_a_head_and_maintenance_only() -> None:
    repository = definitions({"name": "a", "uri": "/a.lance"}).get_repository_def()
    assert not repository.has_job("a_ingest") and repository.has_job("a_maintenance")
    assert [sensor.name for sensor in repository.sensor_defs] == ["a_versions"]
    assert repository.asset_graph.get_all_asset_keys() == {dg.AssetKey("a")}


def test_one_code_location_defines_several_datasets() -> None:
    merged = definitions({"name": "a", "uri": "/a"}, {"name": "b/a", "uri": "/b", "raw": {"uri": "/in"}})
    dg.Definitions.validate_loadable(merged)
    assert merged.resolve_job_def("b_a_compact").name == "b_a_compact"


def test_freshness_is_a_check_and_a_sensor_where_the_declaration_has_a_limit() -> None:
    with_limit = definitions({"name": "a", "uri": "/a", "health": {"hours_without_version": 6}}).get_repository_def()
    assert {sensor.name for sensor in with_limit.sensor_defs} == {"a_versions", "a_freshness"}
    assert dg.AssetCheckKey(dg.AssetKey("a"), "fresh") in with_limit.asset_graph.asset_check_keys
    without = definitions({"name": "a", "uri": "/a"}).get_repository_def()
    assert dg.AssetCheckKey(dg.AssetKey("a"), "fresh") not in without.asset_graph.asset_check_keys


@pytest.mark.parametrize(
    ("described", "shown"),
    [({}, "The table at ${LAKE}/a: each version is one materialization."), ({"description": "Trips."}, "Trips.")],
)
def test_every_asset_and_job_says_what_it_is(described: dict[str, str], shown: str) -> None:
    declared = {"name": "a", "uri": "${LAKE}/a", "raw": {"uri": "/in"}, "indices": [{"column": "id"}], **described}
    made = definitions(declared)
    graph = made.resolve_asset_graph()
    assert graph.get(dg.AssetKey("a")).description == shown
    assert all(graph.get(key).description for key in graph.get_all_asset_keys())
    repository = made.get_repository_def()
    assert [job.name for job in repository.get_all_jobs() if not job.description and job.name != "__ASSET_JOB"] == []
    assert [sensor.name for sensor in repository.sensor_defs if not sensor.description] == []
    assert [schedule.name for schedule in repository.schedule_defs if not schedule.description] == []
    checks = [graph.get_check_spec(key) for key in graph.asset_check_keys]
    assert [check.name for check in checks if not check.description] == []


JOBS = {
    "a_ingest": "ingest",
    "a_checks": "health",
    "a_count": "count",
    "a_statistics": "statistics",
    "a_duplicates": "duplicates",
    "a_upkeep": "upkeep",
    "a_maintenance": "upkeep",
    "lake_maintenance": "fleet",
}
"""The jobs of a dataset `a` and of a fleet `lake`, except those of verbs, with their commands."""


def test_every_job_has_a_command_that_the_page_names() -> None:
    fleet = build_fleet_definitions(FleetConfig(name="lake", root="/lake"))
    declared = dg.Definitions.merge(definitions({"name": "a", "uri": "/a", "raw": {"uri": "/in"}}), fleet)
    found = {job.name for job in declared.get_repository_def().get_all_jobs()} - {"__ASSET_JOB"}
    commands = JOBS | {f"a_{verb.name}": verb.command for verb in ALL_VERBS}
    assert found == commands.keys()
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    assert {command.split()[0] for command in commands.values()} <= group.commands.keys()
    page = (Path(__file__).parents[2] / "docs/dagster.md").read_text()
    for job, command in JOBS.items():
        shown = job.replace("a_", "<dataset>_", 1) if job.startswith("a_") else job.replace("lake_", "<fleet>_", 1)
        assert f"| `{shown}` | `{command}` |" in page


def test_loading_definitions_reads_no_environment_and_opens_nothing() -> None:
    declared = {"name": "a", "uri": "${NOT_SET}/a", "raw": {"uri": "${NOT_SET}/in"}}
    dg.Definitions.validate_loadable(definitions(declared))


def test_a_deployment_on_threads_imports_neither_spark_nor_libraries_of_data_frames() -> None:
    declared = {"name": "a", "uri": "x", "runner": "threads", "raw": {"uri": "y", "key": "(?P<key>[0-9]+)"}}
    code = (
        "import sys, lance_ops.dagster.component, lance_ops.dagster.io\n"
        "from lance_ops.dagster import DatasetConfig, build_definitions\n"
        f"build_definitions(DatasetConfig.model_validate({declared!r})).get_repository_def()\n"
        "print(*sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert not {"pyspark", "pandas", "polars", "duckdb"} & set(shown.split())

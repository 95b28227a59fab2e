from __future__ import annotations

import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head import health_markdown, judge, measure
from lance_ops.dagster.jobs import build_schedules
from tests.dagster.deployment import Deploy, Deployment, check_results, write_damaged_tag

pytestmark = pytest.mark.dagster


def fill(deployment: Deployment) -> None:
    deployment.fill(4)
    deployment.data.delete("id >= 30")


def test_maintenance_measures_compacts_reindexes_cleans_up_and_checks(deploy: Deploy) -> None:
    deployment = deploy(maintenance={"cleanup": {"older_than_days": None, "retain_versions": 2}})
    fill(deployment)
    result = deployment.run("maintenance")
    steps = [event.step_key for event in result.all_events if event.is_step_success]
    assert steps == ["health", "compact", "reindex", "cleanup", "verdict"]
    assert len(deployment.data.get_fragments()) == 1
    assert deployment.data.count_rows() == 30
    assert deployment.data.describe_indices()[0].num_rows_indexed == 30
    assert len(deployment.data.versions()) == 2
    assert deployment.head_versions() == list(range(6, deployment.data.version + 1))
    results = check_results(result)
    assert set(results) == {"small_fragments", "deleted_ratio", "unindexed_ratio", "versions"}
    assert all(evaluation.passed for evaluation in results.values())


def test_maintenance_keeps_the_declared_type_of_an_index_or_the_one_that_the_table_has(deploy: Deploy) -> None:
    deployment = deploy(indices=[{"column": "id"}, {"column": "city", "type": "ZONEMAP", "name": "cities"}])
    deployment.fill(2)
    deployment.data.create_scalar_index("id", "ZONEMAP")
    deployment.data.insert(pa.table({"id": range(20, 25), "city": ["Bern"] * 5}))
    deployment.run("maintenance")
    indices = {each.name: (each.index_type, each.num_rows_indexed) for each in deployment.data.describe_indices()}
    assert indices == {"id_idx": ("ZoneMap", 25), "cities": ("ZoneMap", 25)}


def test_maintenance_that_leaves_a_dataset_beyond_a_limit_fails(deploy: Deploy) -> None:
    never = {"target_rows_per_fragment": 1, "materialize_deletions": False}
    deployment = deploy(maintenance={"compaction": never})
    deployment.fill(2)
    deployment.data.delete("id % 2 = 0")
    with pytest.raises(dg.Failure, match="deleted_ratio is .*, above the limit of 0.2; run trips_compact"):
        deployment.run("maintenance")
    assert deployment.data.describe_indices(), "what could be done was done"


def test_versions_that_clean_up_must_keep_are_a_warning_that_fails_no_run(deploy: Deploy) -> None:
    deployment = deploy(health={"versions": 2})
    fill(deployment)
    found = check_results(deployment.run("maintenance"))["versions"]
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert found.metadata["lance/value"].value == 0
    said = found.description or ""
    assert said.startswith("versions is 0, within the limit of 2; clean-up keeps 8 versions: lower ")
    assert "maintenance.cleanup.older_than_days (14)" in said and "health.versions" in said


def test_a_damaged_tag_stops_the_clean_up_of_a_maintenance_and_no_step_before_it(deployment: Deployment) -> None:
    fill(deployment)
    write_damaged_tag(deployment)
    result = deployment.location.run("trips_maintenance", raise_on_error=False)
    assert [event.step_key for event in result.all_events if event.is_step_success] == ["health", "compact", "reindex"]
    (failed,) = result.get_step_failure_events()
    assert failed.step_key == "cleanup" and "kept.json" in str(failed.step_failure_data.error)
    assert len(deployment.data.get_fragments()) == 1


def test_versions_that_cannot_be_counted_are_no_number_and_fail_no_run(deployment: Deployment) -> None:
    fill(deployment)
    write_damaged_tag(deployment)
    measured = measure(deployment.config, deployment.data.snapshot)
    verdicts = judge(deployment.config, measured)
    (versions,) = (verdict for verdict in verdicts if verdict.name == "versions")
    assert versions.passed and versions.value is None
    said = health_markdown(measured, verdicts)
    assert "| versions | unknown |" in said and "kept.json" in said


def test_a_second_maintenance_finds_nothing_to_do(deployment: Deployment) -> None:
    fill(deployment)
    deployment.run("maintenance")
    version = deployment.data.version
    deployment.run("maintenance")
    assert deployment.data.version == version


def test_the_schedule_follows_the_declaration() -> None:
    config = DatasetConfig.model_validate(
        {"name": "a", "uri": "x", "maintenance": {"cron": "0 5 * * 1", "timezone": "Europe/Zurich"}}
    )
    (schedule,) = build_schedules(config)
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 5 * * 1", "Europe/Zurich")
    silent = DatasetConfig.model_validate({"name": "a", "uri": "x", "maintenance": {"cron": None}})
    assert build_schedules(silent) == []


@pytest.mark.parametrize(
    ("declared", "crons"),
    [({}, ["30 3 * * *"]), ({"upkeep": {}}, []), ({"upkeep": {}, "cron": "0 5 * * 1"}, ["0 5 * * 1"])],
)
def test_a_declared_upkeep_takes_the_place_of_the_nightly_schedule(
    declared: dict[str, object], crons: list[str]
) -> None:
    config = DatasetConfig.model_validate({"name": "a", "uri": "x", "maintenance": declared})
    assert [schedule.cron_schedule for schedule in build_schedules(config)] == crons
    again = DatasetConfig.model_validate(config.model_dump())
    assert again == config

"""One declaration maintains every table beneath a root, as an asset, a job and a schedule."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.definitions.reconstruct import ReconstructableJob, ReconstructableRepository
from dagster.components.testing import create_defs_folder_sandbox

import lance_ops
from lance_ops.dagster import LanceFleetComponent
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_asset_definitions, build_definitions
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.fleet import FleetConfig, build_fleet_definitions, load_fleets
from lance_ops.dagster.fleet.left_out import tables_of_datasets
from lance_ops.dagster.in_process import CodeLocation
from lance_ops.errors import ConfigError
from lance_ops.maintenance.fleet.ledger import Ledger
from lance_ops.store import open_store
from tests.dagster.alert_receiver import receiving
from tests.dagster.deployment import values

pytestmark = [
    pytest.mark.dagster,
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
]

HEAD = dg.AssetKey("lake")
DRY_RUN = {"lake": {"config": {"dry_run": True}}}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    root = tmp_path / "lake"
    for name, num_fragments in (("a", 30), ("deep/b", 20), ("c", 1)):
        table = pa.table({"id": range(num_fragments)})
        lance_ops.write_dataset(table, str(root / name), max_rows_per_file=1)
    return root


def location(root: Path, instance: dg.DagsterInstance, **declared: object) -> CodeLocation:
    config = FleetConfig.model_validate({"name": "lake", "root": str(root), **declared})
    return CodeLocation(build_fleet_definitions(config), instance)


def damage(table: Path) -> None:
    for manifest in (table / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"junk")


def recorded(instance: dg.DagsterInstance) -> tuple[bool, str]:
    """Return the newest result of the check: whether it passes, and its words."""
    found = newest_evaluation(instance, dg.AssetCheckKey(HEAD, "maintained"))
    assert found is not None
    return found.evaluation.passed, str(found.evaluation.description)


def test_a_night_is_a_materialization_with_a_table_of_what_was_done(lake: Path, instance: dg.DagsterInstance) -> None:
    located = location(lake, instance, budget={"max_tables": 1})
    (schedule,) = located.definitions.schedules or ()
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert (schedule.job_name, schedule.cron_schedule) == ("lake_maintenance", "0 1 * * *")
    for number, done in enumerate(("a", "deep/b", None)):
        assert located.run("lake_maintenance").success
        (newest,) = instance.fetch_materializations(HEAD, limit=1).records
        assert newest.asset_materialization is not None
        found = values(newest.asset_materialization.metadata)
        assert found["lance/num_done"] == (done is not None) and found["lance/num_tables"] == 3
        assert found["lance/num_waiting"] == (number == 0)
        assert f"| {done} | done |" in found["lance/tables"] if done else "No table owes" in found["lance/tables"]


@pytest.mark.parametrize("failure_threshold", [0.0, 0.5], ids=["the night fails", "the night succeeds"])
def test_a_night_in_which_a_table_fails_is_told_once(
    lake: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, failure_threshold: float
) -> None:
    with receiving() as received:
        monkeypatch.setenv("ALERT_URL", received.url)
        channel = {"webhook": {"url": "${ALERT_URL}"}}
        located = location(lake, instance, alerts=[channel], failure_threshold=failure_threshold)
        located.tick("lake_alerts_webhook")
        assert located.run("lake_maintenance").success
        assert located.tick("lake_alerts_webhook").skip_message == "nothing to tell"
        damage(lake / "c")
        for _ in range(2):
            assert located.run("lake_maintenance", raise_on_error=False).success is (failure_threshold > 0)
            located.tick("lake_alerts_webhook")
        (told,) = received.take()
        assert (told["event"], told["dataset"], told["title"]) == ("check", "lake", "check maintained is red")
        assert "\nc: " in told["reason"], "it names the table"


@pytest.mark.parametrize("failure_threshold", [0.0, 0.5, 1.0])
def test_tables_that_fail_while_another_one_stays_damaged_are_told(
    lake: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, failure_threshold: float
) -> None:
    with receiving() as received:
        monkeypatch.setenv("ALERT_URL", received.url)
        channel = {"webhook": {"url": "${ALERT_URL}"}}
        located = location(lake, instance, alerts=[channel], failure_threshold=failure_threshold)

        def told() -> list[str]:
            located.run("lake_maintenance", raise_on_error=False)
            located.tick("lake_alerts_webhook")
            alerts = received.take()
            assert {alert["title"] for alert in alerts} <= {"check maintained is red"}
            return [alert["reason"] for alert in alerts]

        located.tick("lake_alerts_webhook")
        damage(lake / "c")
        (reason,) = told()
        assert "\nc: " in reason
        damage(lake / "a")
        damage(lake / "deep/b")
        (reason,) = told()
        assert "\na: " in reason and "\ndeep/b: " in reason
        assert told() == []
        assert not location(lake, instance).run("lake_maintenance", DRY_RUN, raise_on_error=False).success
        located.tick("lake_alerts_webhook")
        assert [alert["event"] for alert in received.take()] == ["failure"], "no check tells of a dry run"


def test_a_run_that_fails_names_the_tables_that_failed(lake: Path, instance: dg.DagsterInstance) -> None:
    damage(lake / "c")
    with pytest.raises(dg.Failure, match=r"(?s)3 tables beneath .*1 failed\nc: .*manifest"):
        location(lake, instance, failure_threshold=0.0).run("lake_maintenance")


def test_a_dry_run_keeps_the_result_of_the_newest_night(lake: Path, instance: dg.DagsterInstance) -> None:
    located = location(lake, instance, failure_threshold=0.5)
    assert located.run("lake_maintenance", DRY_RUN).success
    assert recorded(instance) == (True, "no night has maintained the tables yet")
    kept = {path: path.read_bytes() for path in (lake / "c" / "_versions").glob("*.manifest")}
    damage(lake / "c")
    assert located.run("lake_maintenance").success
    red = recorded(instance)
    assert not red[0] and "\nc: " in red[1]
    for path, content in kept.items():
        path.write_bytes(content)
    assert located.run("lake_maintenance", DRY_RUN).success
    assert recorded(instance) == red, "nothing was paid or verified"
    assert located.run("lake_maintenance").success
    assert recorded(instance)[0]
    damage(lake / "c")
    assert not location(lake, instance).run("lake_maintenance", DRY_RUN, raise_on_error=False).success
    assert recorded(instance)[0]


def test_a_channel_of_a_fleet_that_hears_only_of_failures_is_told_of_a_failed_night(
    lake: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as received:
        monkeypatch.setenv("ALERT_URL", received.url)
        channel = {"webhook": {"url": "${ALERT_URL}"}, "events": ["failure"]}
        located = location(lake, instance, alerts=[channel])
        located.tick("lake_alerts_webhook")
        damage(lake / "c")
        located.run("lake_maintenance", raise_on_error=False)
        located.tick("lake_alerts_webhook")
        (told,) = received.take()
        assert (told["event"], told["title"]) == ("failure", "a run of lake_maintenance failed")
        assert told["remedy"] == "Mend the cause and launch the run again."


def test_a_night_with_too_many_failures_fails_and_says_which(lake: Path, instance: dg.DagsterInstance) -> None:
    damage(lake / "c")
    result = (
        location(lake, instance)
        .definitions.resolve_job_def("lake_maintenance")
        .execute_in_process(instance=instance, raise_on_error=False)
    )
    assert not result.success
    (observed,) = instance.fetch_observations(HEAD, limit=10).records
    assert observed.asset_observation is not None
    assert "| c | failed |" in values(observed.asset_observation.metadata)["lance/tables"]
    assert location(lake, instance, failure_threshold=0.5).run("lake_maintenance").success


CODE_LOCATION = """
import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_asset_definitions, build_definitions
from lance_ops.dagster.fleet import FleetConfig, build_fleet_definitions

DATASETS = {
    "orders": {"cleanup": {"older_than_days": 365}},
    "events": {"cron": None},
    "elsewhere": {},
}
CONFIGS = [
    DatasetConfig.model_validate(
        {"name": name, "uri": "${LAKE}/" + name, "maintenance": maintenance, "runner": "threads"}
    )
    for name, maintenance in DATASETS.items()
]
POLICY = {"cleanup": {"older_than_days": None, "retain_versions": 1}, "min_removable_versions": 1}
FLEET = {"name": "lake", "root": "${LAKE}", "exclude": ["a", "c"], "policy": POLICY, "runner": "threads"}
defs = dg.Definitions.merge(
    *map(build_definitions, CONFIGS), build_fleet_definitions(FleetConfig.model_validate(FLEET))
)
"""


def reconstructable(folder: Path, lake: Path, monkeypatch: pytest.MonkeyPatch) -> ReconstructableJob:
    """Return the fleet's job as a run of the code location executes it."""
    monkeypatch.setenv("LAKE", f"file://{lake}")
    place = folder / "location.py"
    place.write_text(CODE_LOCATION)
    return ReconstructableRepository.for_file(str(place), "defs").get_reconstructable_job("lake_maintenance")


def test_a_table_that_a_dataset_of_the_code_location_maintains_is_left_out(
    lake: Path, tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders", "events"):
        for number in range(3):
            lance_ops.write_dataset(pa.table({"id": [number]}), str(lake / name), mode="append" if number else "create")
    with dg.execute_job(reconstructable(tmp_path, lake, monkeypatch), instance=instance) as result:
        assert result.success
    (newest,) = instance.fetch_materializations(HEAD, limit=1).records
    assert newest.asset_materialization is not None
    found = values(newest.asset_materialization.metadata)
    lines = {line.split(" | ")[0].strip("| "): line for line in found["lance/tables"].splitlines()[2:]}
    assert {name for name, line in lines.items() if "| left out |" in line} == {"orders", "a", "c"}
    assert "dataset orders maintains it by its own declaration" in lines["orders"]
    assert lines["a"].endswith("excluded by a |")
    assert (found["lance/num_left_out"], found["lance/num_done"]) == (3, 2)
    assert [len(lance_ops.dataset(str(lake / name)).versions()) for name in ("orders", "events")] == [3, 1]


def test_the_root_itself_may_be_the_table_of_a_dataset(lake: Path) -> None:
    config = DatasetConfig.model_validate({"name": "x/a", "uri": str(lake / "a"), "runner": "threads"})
    repository = build_definitions(config).get_repository_def()
    for root, found in (("a", {".": "x/a"}), ("", {"a": "x/a"}), ("deep", {}), ("a/b", {})):
        assert tables_of_datasets(repository, str(lake / root)) == found


def test_a_table_whose_versions_are_in_dynamodb_is_left_out_by_the_uri_of_its_files() -> None:
    uri = "s3+ddb://bucket/lake/x/a.lance?ddbTableName=commits"
    config = DatasetConfig.model_validate({"name": "x/a", "uri": uri, "runner": "threads"})
    repository = build_definitions(config).get_repository_def()
    for root, found in (("s3://bucket/lake", {"x/a.lance": "x/a"}), ("s3a://bucket", {"lake/x/a.lance": "x/a"})):
        assert tables_of_datasets(repository, root) == found
    assert tables_of_datasets(repository, "s3://bucket/lak") == {}


def test_a_table_of_a_dataset_without_its_jobs_is_maintained_by_the_fleet(lake: Path) -> None:
    config = DatasetConfig.model_validate({"name": "x/a", "uri": str(lake / "a"), "runner": "threads"})
    assert tables_of_datasets(build_asset_definitions(config).get_repository_def(), str(lake)) == {}


def test_a_fleet_that_cannot_tell_where_the_table_of_a_dataset_is_says_so(lake: Path) -> None:
    config = DatasetConfig.model_validate({"name": "x/a", "uri": "${NOT_SET_LAKE}/a", "runner": "threads"})
    repository = build_definitions(config).get_repository_def()
    with pytest.raises(ConfigError, match=r"whether the table of dataset x/a lies beneath its root.* NOT_SET_LAKE is"):
        tables_of_datasets(repository, str(lake))


@pytest.mark.parametrize("succeeds", [True, False])
def test_only_a_re_execution_of_a_night_that_failed_shares_its_budget(
    lake: Path, tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, succeeds: bool
) -> None:
    job = reconstructable(tmp_path, lake, monkeypatch)
    if not succeeds:
        lance_ops.write_dataset(pa.table({"id": [1]}), str(lake / "bad"))
        damage(lake / "bad")
    runs: list[str] = []
    for parent in (None, 0):
        append = pa.table({"id": range(20)})
        lance_ops.write_dataset(append, str(lake / "deep/b"), mode="append", max_rows_per_file=1)
        again = None if parent is None else dg.ReexecutionOptions(runs[parent])
        with dg.execute_job(job, instance=instance, reexecution_options=again) as result:
            assert result.success is succeeds
            runs.append(result.run_id)
        assert Ledger.load(open_store(str(lake))).night == (runs[-1] if succeeds else runs[0])


def test_a_component_and_a_yaml_file_declare_a_fleet(tmp_path: Path) -> None:
    attributes = {"name": "lake", "root": "${LAKE}", "policy": {"compaction": {"target_rows_per_fragment": 7}}}
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=LanceFleetComponent,
            defs_yaml_contents={"type": "lance_ops.dagster.LanceFleetComponent", "attributes": attributes},
        )
        with sandbox.load_component_and_build_defs(defs_path=path) as (component, definitions):
            assert isinstance(component, LanceFleetComponent)
            assert component.config.debt_policy().compaction.target_rows_per_fragment == 7
            dg.Definitions.validate_loadable(definitions)
    (tmp_path / "a.yaml").write_text("fleet:\n  name: lake\n  root: /x\n  budget: {max_megabytes: 5}\n")
    (fleet,) = load_fleets(tmp_path)
    assert fleet.night_budget().max_bytes == 5 * 1024**2
    shown = {"name": "lake", "root": "/x", "group_name": "bronze", "tags": {"team": "a"}, "kinds": ["s3"]}
    (asset,) = build_fleet_definitions(FleetConfig.model_validate(shown)).resolve_all_asset_specs()
    assert (asset.group_name, asset.tags["team"], asset.kinds) == ("bronze", "a", {"lance", "s3"})
    (tmp_path / "b.yaml").write_text("fleet: {name: lake, root: /y}\n")
    with pytest.raises(ConfigError, match="b.yaml: fleet.name: lake is declared twice"):
        load_fleets(tmp_path)
    (tmp_path / "b.yaml").write_text("fleet: {name: other, root: /y, cron: never}\n")
    with pytest.raises(ConfigError, match="b.yaml: fleet.cron: not a cron schedule"):
        load_fleets(tmp_path)

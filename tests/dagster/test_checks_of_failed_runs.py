"""A run that fails still shows the state of each check that it planned, or why the check could not look."""

from __future__ import annotations

import asyncio
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.loader import LoadingContextForTest

from lance_ops.dagster import failures, opening
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.head import checks
from lance_ops.dagster.landing import batches
from lance_ops.errors import InvalidInput, StoreError, StoreUnreachable
from lance_ops.snapshot import Snapshot
from tests.dagster.deployment import Deploy, Deployment

pytestmark = pytest.mark.dagster

_OF_INGEST_JOB = frozenset(
    (
        *("valid", "batches_exactly_once", "small_fragments", "deleted_ratio", "unindexed_ratio", "versions"),
        *("landing_readable", "batches_settled"),
    )
)


def shown(deployment: Deployment) -> dict[str, str]:
    """Return the state that Dagster's UI shows of each check, by name."""
    storage = deployment.instance.event_log_storage
    keys = deployment.location.definitions.resolve_asset_graph().asset_check_keys
    newest = storage.get_latest_asset_check_execution_by_key(sorted(keys))
    context = LoadingContextForTest(deployment.instance)
    return {key.name: asyncio.run(found.resolve_status(context)).value for key, found in newest.items()}


def told(deployment: Deployment) -> dict[str, str]:
    """Return the description of the newest evaluation of each check, by name."""
    keys = deployment.location.definitions.resolve_asset_graph().asset_check_keys
    newest = {key.name: newest_evaluation(deployment.instance, key) for key in keys}
    return {name: found.evaluation.description or "" for name, found in newest.items() if found is not None}


def land_junk(deployment: Deployment, key: str) -> None:
    deployment.land(key, range(1)).write_bytes(b"this is no Parquet")


def ingest_all(deployment: Deployment, *keys: str) -> dg.ExecuteInProcessResult:
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), list(keys))
    tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
    return deployment.location.run(deployment.names.of("ingest"), tags=tags, raise_on_error=False)


def test_a_run_that_sets_a_batch_aside_fails_and_its_other_checks_pass(deploy: Deploy) -> None:
    deployment = deploy(indices=[])
    deployment.land("a", range(3))
    land_junk(deployment, "b")
    run = ingest_all(deployment, "a", "b")
    assert not run.success
    assert shown(deployment) == dict.fromkeys(_OF_INGEST_JOB, "SUCCEEDED") | {"batches_settled": "FAILED"}
    check = dg.AssetCheckKey(deployment.names.head, "batches_exactly_once")
    newest = newest_evaluation(deployment.instance, check)
    assert newest is not None and newest.run_id == run.run_id
    assert newest.evaluation.description == "every recorded batch is in the dataset once"


def test_a_run_that_sets_its_only_batch_aside_before_there_is_a_table_shows_its_checks(deploy: Deploy) -> None:
    deployment = deploy(health={"hours_without_version": 24})
    land_junk(deployment, "a")
    assert not ingest_all(deployment, "a").success
    expected = dict.fromkeys((*_OF_INGEST_JOB, "fresh"), "SUCCEEDED") | {"batches_settled": "FAILED"}
    assert shown(deployment) == expected


def test_a_run_that_sets_a_batch_aside_shows_what_else_is_wrong(deploy: Deploy) -> None:
    deployment = deploy(health={"small_fragments": 1})
    deployment.fill(3)
    land_junk(deployment, "z")
    (deployment.landing / "link.parquet").symlink_to("nowhere")
    assert not ingest_all(deployment, "z").success
    found = shown(deployment)
    red = {"batches_settled", "small_fragments", "landing_readable", "unindexed_ratio"}
    assert {name for name, state in found.items() if state == "FAILED"} == red
    assert set(found.values()) == {"FAILED", "SUCCEEDED"}


@pytest.mark.parametrize("error", [StoreError("no answer"), RuntimeError("of a package")])
def test_a_check_that_cannot_look_hides_neither_the_batches_that_were_set_aside_nor_other_checks(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def failed(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(checks, "evaluate_valid", failed)
    land_junk(deployment, "a")
    run = ingest_all(deployment, "a")
    (failure,) = (event for event in run.all_events if event.is_step_failure)
    assert "1 of 1 batches are set aside" in str(failure.step_failure_data)
    states = shown(deployment)
    assert (states["batches_settled"], states["batches_exactly_once"]) == ("FAILED", "SUCCEEDED")
    assert (
        told(deployment)["valid"]
        == f"not looked at, because {error if isinstance(error, StoreError) else 'RuntimeError'}"
    )


def test_a_run_that_fails_for_its_own_reason_shows_the_checks_of_the_table(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise InvalidInput("of this run alone")

    deployment = deploy(indices=[])
    deployment.fill(1)
    monkeypatch.setattr(batches, "ingest", refuse)
    deployment.land("z", range(3))
    run = ingest_all(deployment, "z")
    assert not run.success
    assert shown(deployment) == dict.fromkeys(_OF_INGEST_JOB, "SUCCEEDED") | {"batches_settled": "FAILED"}
    said = told(deployment)["batches_settled"]
    reason = f"run {run.run_id[:8]} failed; the sensor asks for it again 5 minutes after its end"
    assert said == f"1 batches need somebody\nz: {reason}"
    assert "as before" in str(deployment.tick("settled").skip_message), "the sensor has no other words for it"


def test_a_run_whose_batches_are_in_the_table_names_none_when_it_fails_later(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise InvalidInput("of this run alone")

    deployment = deploy(indices=[])
    monkeypatch.setattr(batches, "report_versions", refuse)
    deployment.land("z", range(3))
    assert not ingest_all(deployment, "z").success
    assert deployment.data.count_rows() == 3
    assert told(deployment)["batches_settled"] == "no batch needs somebody"


@pytest.mark.parametrize(
    ("max_retries", "tags", "is_named"),
    [
        (1, {}, False),
        (1, {"dagster/retry_on_asset_or_op_failure": "true"}, False),
        (1, {"dagster/retry_on_asset_or_op_failure": "false"}, True),
        (1, {"dagster/max_retries": "0"}, True),
        pytest.param(
            *(1, {"dagster/max_retries": "many"}, True),
            marks=pytest.mark.filterwarnings("ignore:Error parsing int from tag dagster/max_retries"),
        ),
        (0, {}, True),
        (0, {"dagster/max_retries": "2"}, False),
    ],
)
def test_a_batch_is_named_at_once_unless_dagster_may_retry_its_run(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, max_retries: int, tags: dict[str, str], is_named: bool
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise InvalidInput("of this run alone")

    deployment = deploy(indices=[])
    monkeypatch.setattr(batches, "ingest", refuse)
    monkeypatch.setattr(type(deployment.instance), "run_retries_enabled", property(lambda _: True))
    monkeypatch.setattr(type(deployment.instance), "run_retries_max_retries", property(lambda _: max_retries))
    deployment.land("z", range(3))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["z"])
    deployment.location.run(
        deployment.names.of("ingest"), tags={"dagster/partition": "z", **tags}, raise_on_error=False
    )
    assert ("z: run" in told(deployment)["batches_settled"]) is is_named


def test_a_batch_that_another_run_is_about_to_ingest_is_not_named(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise InvalidInput("of this run alone")

    deployment = deploy(indices=[])
    monkeypatch.setattr(batches, "ingest", refuse)
    deployment.land("z", range(3))
    deployment.add_run("z", dg.DagsterRunStatus.STARTED)
    assert not ingest_all(deployment, "z").success
    assert told(deployment)["batches_settled"] == "no batch needs somebody"


def test_a_run_on_a_damaged_table_shows_the_damage_and_what_could_not_be_looked_at(deploy: Deploy) -> None:
    deployment = deploy(health={"hours_without_version": 24})
    deployment.fill(1)
    [manifest] = Path(deployment.config.uri).glob("_versions/*.manifest")
    manifest.write_bytes(b"junk")
    deployment.land("z", range(3))
    assert not ingest_all(deployment, "z").success
    assert shown(deployment) == dict.fromkeys((*_OF_INGEST_JOB, "fresh"), "FAILED") | {"landing_readable": "SUCCEEDED"}
    said = told(deployment)
    assert "trips_repair" in said["valid"]
    not_looked = {name for name, words in said.items() if words.startswith("not looked at, because ")}
    assert not_looked == {*_OF_INGEST_JOB, "fresh"} - {"valid", "landing_readable"}


def test_a_run_whose_store_is_down_asks_it_once_more_and_says_so_in_each_check(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, opened = deploy(health={"hours_without_version": 24}), []

    def unreachable(*arguments: object, **options: object) -> Snapshot | None:
        opened.append(arguments)
        raise StoreUnreachable("the store does not answer")

    monkeypatch.setattr(failures, "_SECONDS_TO_WAIT", 0)
    monkeypatch.setattr(batches, "open_for_run", unreachable)
    deployment.land("z", range(3))
    with monkeypatch.context() as down:
        down.setattr(Snapshot, "open_if_exists", unreachable)
        assert not ingest_all(deployment, "z").success
    num_attempts = 4
    assert len(opened) == num_attempts + 1, "the checks open the table once, after the last attempt"
    assert shown(deployment) == dict.fromkeys((*_OF_INGEST_JOB, "fresh"), "FAILED") | {"landing_readable": "SUCCEEDED"}
    said = told(deployment)
    assert said.pop("landing_readable") and set(said.values()) == {"not looked at, because the store does not answer"}


def test_the_sensor_of_versions_looks_again_when_the_store_is_back(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*arguments: object, **options: object) -> Snapshot | None:
        raise StoreUnreachable("the store does not answer")

    deployment.fill(1)
    deployment.tick("versions")
    monkeypatch.setattr(failures, "_SECONDS_TO_WAIT", 0)
    deployment.land("z", range(3))
    with monkeypatch.context() as down:
        down.setattr(batches, "open_for_run", unreachable)
        down.setattr(Snapshot, "open_if_exists", unreachable)
        assert not ingest_all(deployment, "z").success
    assert shown(deployment)["valid"] == "FAILED"
    deployment.tick("versions")
    assert shown(deployment)["valid"] == "SUCCEEDED"


def test_the_checks_of_a_run_that_sets_a_batch_aside_open_the_table_once(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, opened = deploy(health={"hours_without_version": 24}), []
    deployment.fill(1)
    open_it = opening.open_to_look

    def count(config: DatasetConfig) -> Snapshot | None:
        opened.append(config)
        return open_it(config)

    monkeypatch.setattr(opening, "open_to_look", count)
    land_junk(deployment, "z")
    assert not ingest_all(deployment, "z").success
    assert len(opened) == 1

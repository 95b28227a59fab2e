"""A run that sets batches aside fails, and still shows the true state of each check that it planned."""

from __future__ import annotations

import asyncio

import dagster as dg
import pytest
from dagster._core.loader import LoadingContextForTest

from lance_ops.dagster.head import checks
from lance_ops.dagster.newest_evaluation import newest_evaluation
from lance_ops.errors import StoreError
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
    told = newest_evaluation(deployment.instance, check)
    assert told is not None and told.run_id == run.run_id
    assert told.evaluation.description == "every recorded batch is in the dataset once"


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

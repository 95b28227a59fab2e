"""The check of batches does not turn red while a batch is between its partition, its run and the table."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from lance_ops.dagster import batch_states
from lance_ops.dagster.declaration import DatasetConfig, RawFiles
from lance_ops.dagster.landing import batch_report, settled_check
from lance_ops.dagster.landing.landing import Landing, list_landing
from lance_ops.dagster.opening import open_if_exists
from lance_ops.snapshot import Snapshot
from tests.dagster.deployment import Deployment, values

pytestmark = pytest.mark.dagster


def asked_for(deployment: Deployment, *keys: str) -> None:
    """Land batches and add their partitions, as a tick does before it launches their run."""
    for number, key in enumerate(keys):
        deployment.land(key, range(number, number + 1))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), list(keys))


def add_run(deployment: Deployment, key: str, status: dg.DagsterRunStatus, **tags: str) -> dg.DagsterRun:
    of_run = {"dagster/partition": key} | {f"dagster/{name}": value for name, value in tags.items()}
    run = dg.DagsterRun(job_name=deployment.names.of("ingest"), tags=of_run, status=status)
    deployment.instance.add_run(run)
    return run


def reported(deployment: Deployment) -> list[tuple[bool, list[str], list[str]]]:
    """Tick the sensor of the check; return of each result whether it passes, and the batches it names and doubts."""
    found: list[tuple[bool, list[str], list[str]]] = []
    for event in deployment.tick("settled").events:
        if not isinstance(event, dg.AssetCheckEvaluation) or event.check_name != "batches_settled":
            continue
        metadata: dict[str, Any] = values(event.metadata)
        doubted = metadata.get("lance/doubtful_batches", {})
        found.append((event.passed, list(metadata["lance/unsettled_batches"]), list(doubted)))
    return found


def test_a_run_that_commits_and_ends_during_the_evaluation_makes_nothing_red(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for(deployment, "a")
    under_way = [add_run(deployment, "a", dg.DagsterRunStatus.STARTED)]

    def opened_before_a_commit(config: DatasetConfig) -> Snapshot | None:
        snapshot = open_if_exists(config)
        if under_way:
            run = under_way.pop()
            deployment.ingest("a")
            deployment.instance.report_run_canceled(run)
        return snapshot

    monkeypatch.setattr(batch_report, "open_if_exists", opened_before_a_commit)
    report = batch_states(deployment.config, deployment.instance)
    assert [(batch.key, batch.state.value, batch.is_settled) for batch in report.batches] == [("a", "requested", True)]
    (again,) = batch_states(deployment.config, deployment.instance).batches
    assert again.state.value == "ingested"


def test_a_run_that_begins_and_ends_during_the_evaluation_makes_nothing_red(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for(deployment, "a")
    to_ingest = ["a"]

    def listed_after_a_run(raw: RawFiles, now: datetime) -> Landing:
        if to_ingest:
            deployment.ingest(to_ingest.pop())
        return list_landing(raw, now)

    with monkeypatch.context() as patched:
        patched.setattr(batch_report, "list_landing", listed_after_a_run)
        (found,) = batch_states(deployment.config, deployment.instance).batches
    assert (found.state.value, found.is_doubtful) == ("failed", True), "the table was read before its run began"
    (again,) = batch_states(deployment.config, deployment.instance).batches
    assert again.state.value == "ingested"


def test_a_batch_between_its_partition_and_its_run_is_doubted_first(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    assert reported(deployment) == [], "the run said so"
    asked_for(deployment, "b", "c")
    assert reported(deployment) == [(True, [], ["b", "c"])]
    assert reported(deployment) == [], "it is doubted for less than two minutes"
    deployment.ingest("b")
    monkeypatch.setattr(settled_check, "_DOUBTED_FOR", timedelta(0))
    assert reported(deployment) == [(False, ["c"], ["c"])], "the run's evaluation doubted it, too"
    assert reported(deployment) == []
    assert not deployment.check()["batches_settled"].passed, "also in a run"
    deployment.ingest("c")
    assert reported(deployment) == [], "the run said that it is green"
    assert deployment.check()["batches_settled"].passed


def test_a_failed_run_that_dagster_retries_is_under_way(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for(deployment, "a", "b")
    run = add_run(deployment, "a", dg.DagsterRunStatus.FAILURE)
    add_run(deployment, "b", dg.DagsterRunStatus.FAILURE, will_retry="true")

    def states() -> list[str]:
        report = batch_states(deployment.config, deployment.instance)
        return [batch.state.value for batch in sorted(report.batches, key=lambda batch: batch.key)]

    assert states() == ["failed", "requested"]
    with monkeypatch.context() as patched:
        patched.setattr(type(deployment.instance), "run_retries_enabled", property(lambda _: True))
        assert states() == ["requested", "requested"], "Dagster has still to say whether it retries the first one"
        deployment.instance.add_run_tags(run.run_id, {"dagster/will_retry": "false"})
        assert states() == ["failed", "requested"]

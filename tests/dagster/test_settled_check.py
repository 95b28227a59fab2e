"""The check of batches does not turn red while a batch is between its partition, its run and the table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent

from lance_ops.dagster import batch_states, event_log
from lance_ops.dagster.declaration import DatasetConfig, RawFiles
from lance_ops.dagster.landing import batch_report, batch_runs, batches, failed_run_checks, settled_check
from lance_ops.dagster.landing.batch_runs import running_batches
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.dagster.landing.landing_entries import Landing
from lance_ops.dagster.landing.tick import Cursor, Watermark
from lance_ops.dagster.opening import open_to_look
from lance_ops.errors import StoreError
from lance_ops.snapshot import Snapshot
from tests.dagster.deployment import Deployment, values

pytestmark = pytest.mark.dagster


def test_a_long_list_of_batches_is_cut_and_counts_the_others() -> None:
    batches = {f"{number:02}": "it is not read" for number in range(23)}
    lines = settled_check.named_with_reasons(batches).splitlines()
    assert lines[19:] == ["19: it is not read", "and 3 more, which `lance-ops batches` names"]
    assert settled_check.named_with_reasons({"a": "it is not read"}) == "a: it is not read"


def asked_for(deployment: Deployment, *keys: str) -> None:
    """Land batches and add their partitions, as a tick does before it launches their run."""
    for number, key in enumerate(keys):
        deployment.land(key, range(number, number + 1))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), list(keys))


def handled(deployment: Deployment) -> None:
    """Have the raw sensor take all batches as handled: they are below its watermark, and no comparison is due."""
    watermark = Watermark(datetime(2100, 1, 1, tzinfo=UTC), "")
    deployment.location.cursors[deployment.names.of("raw_files")] = Cursor(watermark, datetime.now(UTC)).encode()


def ingest_junk(deployment: Deployment, key: str) -> None:
    """Have a run set a batch aside."""
    path = deployment.landing / f"{key}.parquet"
    times = path.stat()
    path.write_bytes(b"this is no Parquet")
    os.utime(path, (times.st_atime, times.st_mtime))
    with pytest.raises(dg.Failure, match="set aside"):
        deployment.ingest(key)


def newest(deployment: Deployment) -> dg.AssetCheckEvaluation | None:
    """Return the check's newest recorded result."""
    check = dg.AssetCheckKey(deployment.names.head, "batches_settled")
    recorded = event_log.newest_evaluation(deployment.instance, check)
    return None if recorded is None else recorded.evaluation


def on_fire(*arguments: object, **options: object) -> None:
    raise RuntimeError("the machine is on fire")


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
    under_way = [deployment.add_run("a", dg.DagsterRunStatus.STARTED)]

    def opened_before_a_commit(config: DatasetConfig) -> Snapshot | None:
        snapshot = open_to_look(config)
        if under_way:
            run = under_way.pop()
            deployment.ingest("a")
            deployment.instance.report_run_canceled(run)
        return snapshot

    monkeypatch.setattr(batch_report, "open_to_look", opened_before_a_commit)
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


def test_a_run_that_sets_a_batch_aside_forgets_no_other(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for(deployment, "a", "b", "c", "d")
    assert reported(deployment) == [(True, [], ["a", "b", "c", "d"])]
    ingest_junk(deployment, "a")
    ingest_junk(deployment, "d")
    last = newest(deployment)
    assert last is not None
    told = values(last.metadata)
    assert set(told["lance/unsettled_batches"]) == {"a", "d"}, "the run named the earlier one, too"
    assert told["lance/doubtful"] == 2
    monkeypatch.setattr(settled_check, "_DOUBTED_FOR", timedelta(0))
    assert reported(deployment) == [(False, ["a", "d", "b", "c"], ["b", "c"])], "both runs kept since when it is so"


def test_a_run_names_its_refused_batches_although_the_check_cannot_be_evaluated(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for(deployment, "a")

    def failed(*arguments: object) -> Landing:
        raise StoreError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(batch_report, "list_landing", failed)
        ingest_junk(deployment, "a")
    said = newest(deployment)
    assert said is not None and said.severity is dg.AssetCheckSeverity.WARN
    assert said.description == "not looked at, because no answer"
    assert reported(deployment) == [(False, ["a"], [])]


def test_doubtful_batches_beyond_those_recorded_are_counted(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settled_check, "_MOST_DOUBTS", 2)
    monkeypatch.setattr(settled_check, "_DOUBTED_FOR", timedelta(0))
    asked_for(deployment, "a", "b", "c", "d", "e")
    told = []
    for _ in range(2):
        found = settled_check.evaluate_settled(deployment.config, deployment.instance)
        deployment.instance.report_runless_asset_event(found)
        told.append(str(found.description).partition("\n")[0])
    assert told == [
        "no batch needs somebody; no run of 5 others is found, and they are looked at again",
        "2 batches need somebody; no run of 3 others is found, and they are looked at again",
    ]
    assert reported(deployment) == []
    deployment.ingest("e")
    assert "no run of 2 others" in str(
        settled_check.evaluate_settled(deployment.config, deployment.instance).description
    )


def test_the_newest_result_is_found_behind_many_runs_without_one(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    before = newest(deployment)
    assert before is not None and before.passed
    monkeypatch.setattr(event_log, "_RECORDS_AT_ONCE", 1)
    with monkeypatch.context() as patched:
        patched.setattr(batches, "ingest", on_fire)
        patched.setattr(failed_run_checks, "report_checks", lambda *_: None)
        deployment.land("b", range(3, 5))
        for _ in range(3):
            deployment.tick(raise_on_error=False)
    assert newest(deployment) == before


@pytest.mark.usefixtures("without_pauses")
def test_a_batch_whose_backfill_from_the_ui_failed_is_named_and_asked_for_again(deployment: Deployment) -> None:
    asked_for(deployment, "a")
    handled(deployment)
    assert deployment.tick().runs == ()
    run = deployment.add_run_of_ui("a", dg.DagsterRunStatus.FAILURE, deployment.names.batches)
    for number in range(batch_runs._MOST_RUNS + 1):
        deployment.add_run_of_ui("a", dg.DagsterRunStatus.FAILURE, dg.AssetKey(["other", str(number)]))
    (found,) = batch_states(deployment.config, deployment.instance).batches
    told = f"run {run.run_id.partition('-')[0]} failed; the sensor asks for it again 0 minutes after its end"
    assert found.reason == told
    assert len(deployment.tick().runs) == 1
    assert deployment.data.count_rows() == 1


def test_unfinished_runs_of_other_datasets_are_read_up_to_a_limit(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_runs, "_MOST_OTHER_RUNS", 2)
    monkeypatch.setattr(batch_runs, "_MOST_RUNS", 1)
    asked_for(deployment, "a", "b", "c")
    under_way = dg.DagsterRunStatus.STARTED
    for key in ("a", "b"):
        deployment.add_run(key, under_way)
    deployment.add_run_of_ui("c", under_way, deployment.names.batches)
    deployment.add_run_of_ui("c", under_way, dg.AssetKey("other"))
    read: list[int] = []
    fetch = dg.DagsterInstance.get_run_records

    def counted(*args: Any, **options: Any) -> Sequence[dg.RunRecord]:
        records = fetch(*args, **options)
        read.append(len(records))
        return records

    def running() -> set[str]:
        read.clear()
        with monkeypatch.context() as patched:
            patched.setattr(dg.DagsterInstance, "get_run_records", counted)
            return running_batches(deployment.instance, deployment.names, ["a", "b", "c"], datetime.now(UTC))

    assert running() == {"a", "b", "c"}
    for number in range(5):
        deployment.add_run_of_ui("c", under_way, dg.AssetKey(["other", str(number)]))
    assert running() == {"a", "b"}, "all runs of the ingest job count, and the newest others"
    assert sum(read) == 2 + 2


def test_a_batch_whose_backfill_from_the_ui_was_cancelled_is_left_to_a_person(deployment: Deployment) -> None:
    asked_for(deployment, "a")
    deployment.add_run_of_ui("a", dg.DagsterRunStatus.FAILURE, deployment.names.batches)
    deployment.add_run_of_ui("a", dg.DagsterRunStatus.CANCELED, deployment.names.batches)
    (found,) = batch_states(deployment.config, deployment.instance).batches
    assert (found.is_settled, found.reason.endswith("materialize partition a")) == (False, True)


def test_a_run_of_a_user_s_own_job_is_found_by_what_it_planned(deployment: Deployment) -> None:
    instance, names, known = deployment.instance, deployment.names, ["a", "b", "c"]
    empty = frozenset[dg.AssetKey]()
    for key, asset, selected in (("a", names.batches, None), ("b", names.batches, empty), ("c", names.head, None)):
        of_key, under_way = {"dagster/partition": key}, dg.DagsterRunStatus.STARTED
        run = dg.DagsterRun("mine", tags=of_key, status=under_way, asset_selection=selected)
        instance.add_run(run)
        assert key not in running_batches(instance, names, known, datetime.now(UTC)), "it has not planned anything yet"
        planned = AssetMaterializationPlannedData(asset, partition=key)
        event = DagsterEvent.build_asset_materialization_planned_event("mine", "step", planned)
        instance.report_dagster_event(event, run.run_id)
    assert running_batches(instance, names, known, datetime.now(UTC)) == {"a", "b"}


def test_a_retry_that_dagster_announces_and_does_not_start_is_not_waited_for(deployment: Deployment) -> None:
    asked_for(deployment, "a", "b")
    instance, names = deployment.instance, deployment.names
    deployment.add_run("a", dg.DagsterRunStatus.FAILURE, will_retry="true")
    retried = deployment.add_run("b", dg.DagsterRunStatus.FAILURE, will_retry="true")
    instance.add_run_tags(retried.run_id, {"dagster/auto_retry_run_id": "another"})
    for minutes, running, failed in ((9, {"a"}, set()), (11, set(), {"a"})):
        now = datetime.now(UTC) + timedelta(minutes=minutes)
        assert running_batches(instance, names, ["a", "b"], now) == running
        assert batch_runs.failed_runs(instance, names, ["a", "b"], now).keys() == failed


def test_a_failed_run_that_dagster_retries_is_under_way(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for(deployment, "a", "b")
    run = deployment.add_run("a", dg.DagsterRunStatus.FAILURE)
    deployment.add_run("b", dg.DagsterRunStatus.FAILURE, will_retry="true")

    def states() -> list[str]:
        report = batch_states(deployment.config, deployment.instance)
        return [batch.state.value for batch in sorted(report.batches, key=lambda batch: batch.key)]

    assert states() == ["failed", "requested"]
    with monkeypatch.context() as patched:
        patched.setattr(type(deployment.instance), "run_retries_enabled", property(lambda _: True))
        assert states() == ["requested", "requested"], "Dagster has still to say whether it retries the first one"
        deployment.instance.add_run_tags(run.run_id, {"dagster/will_retry": "false"})
        assert states() == ["failed", "requested"]

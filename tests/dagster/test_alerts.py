"""Which alerts a channel is told: each event once, also after a restart and after a channel that was down."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import dagster as dg
import pytest

from lance_ops.dagster.alerts.alert import Alert
from lance_ops.dagster.alerts.pending import Told, Watched, pending_alerts
from lance_ops.dagster.declaration import AlertEvent
from lance_ops.dagster.evaluations import not_looked_warning
from lance_ops.dagster.head.recorded_versions import DATA_VERSION_TAG
from lance_ops.dagster.in_process import CodeLocation
from lance_ops.dagster.landing import REFUSED
from lance_ops.dagster.ops import launch
from lance_ops.errors import AlertNotSent
from lance_ops.maintenance.health import LastChange, last_change
from lance_ops.snapshot import Snapshot
from lance_ops.verbs import Compact
from tests.dagster.alert_receiver import SECRET, Receiver
from tests.dagster.alerting import WEBHOOK, alerts, evaluate, fail
from tests.dagster.deployment import Deploy, Deployment, values
from tests.pages import BLOCK, DOCS

pytestmark = pytest.mark.dagster

JUNK = b"this is no Parquet"


def land_junk(deployment: Deployment, key: str) -> Path:
    path = deployment.land(key, range(1))
    times = path.stat()
    path.write_bytes(JUNK)
    os.utime(path, (times.st_atime, times.st_mtime))
    return path


def test_a_quarantine_is_told_once_also_after_a_restart_and_a_channel_that_was_down(
    deploy: Deploy, receiver: Receiver
) -> None:
    deployment = deploy(alerts=[WEBHOOK], indices=[])
    assert alerts(deployment).skip_message == "nothing to tell"
    deployment.land("d1", range(3))
    land_junk(deployment, "d2")
    deployment.tick(raise_on_error=False)
    assert alerts(deployment).skip_message == "1 alerts were sent", "the failed run and the red check are no others"
    (told,) = receiver.take()
    (run,) = deployment.instance.get_runs()
    assert (told["event"], told["dataset"], told["version"], told["batches"]) == ("quarantine", "trips", 1, ["d2"])
    assert "d2.parquet" in told["reason"] and "Mend or remove" in told["remedy"]
    assert (told["run_id"], told["run_url"]) == (run.run_id, f"https://dagster.example/runs/{run.run_id}")
    assert receiver.headers[0]["Authorization"] == "Bearer a-token"
    assert receiver.headers[0]["Idempotency-Key"] == told["key"]

    cursors = dict(deployment.location.cursors)
    again = CodeLocation(deployment.location.definitions, deployment.instance, cursors)
    assert again.tick("trips_alerts_webhook").skip_message == "nothing to tell"

    receiver.status = 500
    land_junk(deployment, "d3")
    land_junk(deployment, "d4")
    deployment.tick(raise_on_error=False)
    for _ in range(2):
        with pytest.raises(AlertNotSent, match="127.0.0.1 did not take an alert: HTTP 500") as refused:
            alerts(deployment)
        assert SECRET not in str(refused.value) and refused.value.__context__ is None
    receiver.status = 200
    alerts(deployment)
    alerts(deployment)
    assert [alert["batches"] for alert in receiver.take()] == [["d3", "d4"]]


def test_failed_runs_and_red_checks_are_told_once_each(deploy: Deploy, receiver: Receiver) -> None:
    deployment = deploy(alerts=[WEBHOOK])
    alerts(deployment)
    fail(deployment)
    alerts(deployment)
    (told,) = receiver.take()
    assert (told["event"], told["title"], told["version"]) == ("failure", "a run of trips_ingest failed", None)
    assert "have no such files" in told["reason"]
    evaluate(deployment, "versions", passed=False)
    fail(deployment, evaluates_checks=False)  # it planned the check, and did not come to it
    alerts(deployment)
    evaluate(deployment, "versions", passed=False)
    evaluate(deployment, "landing_readable", passed=False, severity=dg.AssetCheckSeverity.WARN)
    alerts(deployment)
    failed, red = receiver.take()
    assert (failed["event"], red["title"], red["status"]) == ("failure", "check versions is red", "firing")
    assert red["reason"] == "versions is not as it should be" and "trips_checks" in red["remedy"]
    evaluate(deployment, "versions", passed=True)
    alerts(deployment)
    (green,) = receiver.take()
    assert (green["title"], green["status"], green["remedy"]) == ("check versions is green again", "resolved", "")
    assert green["key"] == red["key"]
    evaluate(deployment, "versions", passed=False)
    alerts(deployment)
    (anew,) = receiver.take()
    assert (anew["title"], anew["status"]) == ("check versions is red", "firing") and anew["key"] != red["key"]


def test_the_page_shows_the_json_of_a_webhook_as_it_is_sent() -> None:
    run_id = "3f0c1a52-8f0e-4d0c-9a56-0d7c2f5e4b11"
    reason = "versions is 214, above the limit of 200; run trips_cleanup"
    remedy = "Mend what it names, then run trips_checks."
    identity, title = "versions\0417", "check versions is red"
    red = Alert(AlertEvent.CHECK, "trips", identity, title, reason, remedy, version=8021, run_id=run_id)
    green = replace(
        red,
        title="check versions is green again",
        reason="versions is 0, within the limit of 200",
        remedy="",
        version=8023,
        run_id="c41be7d0-52a6-4b1f-8f43-6f1f0a9e2d38",
        occasion="452",
        is_resolved=True,
    )
    blocks = BLOCK.findall((DOCS / "dagster.md").read_text())
    shown = [json.loads(block) for language, block in blocks if language == "json"]
    assert shown == [alert.as_json("https://dagster.example") for alert in (red, green)]


def test_what_was_told_of_a_red_check_has_one_key_until_it_is_resolved(deploy: Deploy, receiver: Receiver) -> None:
    deployment = deploy(alerts=[WEBHOOK | {"events": ["quarantine", "check"]}])
    alerts(deployment)

    def told(*causes: str, passed: bool = False, severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR) -> Any:
        evaluate(deployment, "versions", passed=passed, severity=severity, causes=causes)
        alerts(deployment)
        return [(alert["key"], alert["status"]) for alert in receiver.take()]

    assert told(passed=True) == []
    ((first, status),) = told("a")
    assert status == "firing" and told("a") == []
    assert told("a", "b") == [(first, "firing")]
    assert told(severity=dg.AssetCheckSeverity.WARN) == [(first, "resolved")]
    assert told(passed=True) == []
    messages = {headers["Idempotency-Key"] for headers in receiver.headers}
    assert len(messages) == len(receiver.headers) == 3


def test_a_red_check_is_told_of_each_new_cause(deploy: Deploy, receiver: Receiver) -> None:
    deployment = deploy(alerts=[WEBHOOK | {"events": ["check"]}])
    alerts(deployment)

    def told(*keys: str) -> list[str]:
        for key in keys:
            land_junk(deployment, key)
        deployment.tick(raise_on_error=False)
        deployment.tick("settled")
        alerts(deployment)
        return [alert["title"] for alert in receiver.take()]

    assert told("d1") == ["check batches_settled is red"]
    assert told() == []
    assert told("d2") == ["check batches_settled is red"]
    (deployment.landing / "e=1.parquet").symlink_to(deployment.landing / "d1.parquet")
    assert told() == ["check landing_readable is red"]
    assert told() == []
    (deployment.landing / "e=2.parquet").symlink_to(deployment.landing / "d1.parquet")
    assert told() == ["check landing_readable is red"]


def test_a_batch_that_failed_beside_one_that_was_set_aside_is_told(deploy: Deploy, receiver: Receiver) -> None:
    deployment = deploy(alerts=[WEBHOOK | {"events": ["quarantine", "check"]}], indices=[])
    alerts(deployment)
    land_junk(deployment, "d1")
    deployment.tick(raise_on_error=False)
    alerts(deployment)
    assert [alert["event"] for alert in receiver.take()] == ["quarantine"]
    evaluate(deployment, "batches_settled", passed=False, causes=("d1: quarantined", "d2: failed"))
    alerts(deployment)
    assert [alert["event"] for alert in receiver.take()] == ["check"]
    evaluate(deployment, "batches_settled", passed=False, causes=("d1: quarantined", "d2: failed"))
    alerts(deployment)
    assert receiver.take() == []


@pytest.mark.usefixtures("without_pauses")
def test_a_batch_that_was_set_aside_long_ago_is_told_of_when_it_needs_somebody_for_another_reason(
    deploy: Deploy, receiver: Receiver
) -> None:
    deployment = deploy({"vanished": "refuse"}, alerts=[WEBHOOK], indices=[])
    alerts(deployment)
    land_junk(deployment, "d1")
    deployment.tick(raise_on_error=False)
    alerts(deployment)
    assert [alert["event"] for alert in receiver.take()] == ["quarantine"]
    landed = deployment.land("d1", range(3))
    assert deployment.tick().runs[0].success
    alerts(deployment)
    assert receiver.take() == []
    landed.unlink()
    deployment.tick("settled")
    alerts(deployment)
    (told,) = receiver.take()
    assert (told["event"], told["title"]) == ("check", "check batches_settled is red")
    assert "d1: its files are gone" in told["reason"]


def test_a_red_check_that_could_not_look_once_is_not_told_again(deploy: Deploy, receiver: Receiver) -> None:
    deployment = deploy(alerts=[WEBHOOK])
    alerts(deployment)
    evaluate(deployment, "versions", passed=False)
    alerts(deployment)
    assert len(receiver.take()) == 1
    blind = not_looked_warning(deployment.names.head, "versions", "the store is away")
    deployment.instance.report_runless_asset_event(blind)
    alerts(deployment)
    evaluate(deployment, "versions", passed=False)
    alerts(deployment)
    assert receiver.take() == []


def test_rows_that_do_not_change_are_told_once_and_a_compaction_is_no_change(
    deploy: Deploy, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    clock = [now]

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return clock[0]

    monkeypatch.setattr("lance_ops.dagster.head.freshness.datetime", Clock)
    on_age = WEBHOOK | {"name": "on_age", "events": ["freshness", "check"]}
    on_checks = WEBHOOK | {"name": "on_checks", "events": ["check"]}
    deployment = deploy(health={"hours_without_version": 2}, alerts=[on_age, on_checks])

    def told(hours: float, channel: str = "on_age") -> list[tuple[str, str]]:
        clock[0] = now + timedelta(hours=hours)
        deployment.tick("freshness")
        alerts(deployment, channel)
        return [(alert["event"], alert["reason"]) for alert in receiver.take()]

    assert told(9) == []
    deployment.fill(2)
    assert told(1) == []
    assert deployment.run("compact", launch(Compact(), dry_run=False)).success
    (compacted,) = deployment.instance.fetch_materializations(deployment.names.head, limit=1).records
    assert compacted.asset_materialization is not None
    metadata = values(compacted.asset_materialization.metadata)
    version = deployment.data.version
    assert (metadata["lance/version"], metadata["lance/rows_changed_in"]) == (version, 2)
    deployment.data.create_scalar_index("id", "BTREE")
    searched: list[int] = []

    def search(newest: Snapshot, above: int) -> LastChange | None:
        searched.append(above)
        return last_change(newest, above)

    monkeypatch.setattr("lance_ops.dagster.head.recorded_versions.last_change", search)
    ((event, reason),) = told(9)
    assert searched == [version], "no version with an event is read"
    assert event == "freshness" and reason.startswith("rows changed last in version 2 of ")
    assert told(10) == []
    assert "still red: rows changed last in version 2" in (deployment.tick("freshness").skip_message or "")
    assert [event for event, _ in told(10, "on_checks")] == ["check"]
    deployment.data.delete("id = 1")
    ((event, reason),) = told(1.5)
    assert event == "freshness" and reason.endswith("within the last 2 hours"), "an external writer deleted a row"
    assert [event for event, _ in told(9)] == ["freshness"], "no row has changed since"


def test_an_alert_names_the_version_that_dagster_recorded_and_does_not_look_at_the_table(
    deploy: Deploy, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy(alerts=[WEBHOOK])
    alerts(deployment)
    recorded = dg.AssetMaterialization(deployment.names.head, tags={DATA_VERSION_TAG: "7"})
    deployment.instance.report_runless_asset_event(recorded)
    evaluate(deployment, "versions", passed=False)

    def looked(*_: object) -> NoReturn:
        raise AssertionError("the table was opened")

    monkeypatch.setattr(Snapshot, "open_if_exists", looked)
    alerts(deployment)
    assert [(alert["title"], alert["version"]) for alert in receiver.take()] == [("check versions is red", 7)]


def test_a_channel_is_told_only_of_its_events(deploy: Deploy, receiver: Receiver) -> None:
    of_failures = WEBHOOK | {"name": "on_call", "events": ["failure"]}
    of_checks = WEBHOOK | {"name": "team", "events": ["check"]}
    deployment = deploy(alerts=[of_failures, of_checks])
    alerts(deployment, "on_call")
    alerts(deployment, "team")
    land_junk(deployment, "d1")
    deployment.tick(raise_on_error=False)
    alerts(deployment, "on_call")
    assert [alert["event"] for alert in receiver.take()] == ["failure"]
    alerts(deployment, "team")
    assert [alert["title"] for alert in receiver.take()] == ["check batches_settled is red"]


def test_a_run_that_dagster_retries_or_has_not_judged_yet_is_not_told(deploy: Deploy) -> None:
    deployment = deploy()
    fail(deployment)
    (run,) = deployment.instance.get_runs()
    watched = Watched("trips", ("trips_ingest",), (), deployment.config)

    def found(seconds: float) -> list[Alert | None]:
        now = datetime.now(UTC) + timedelta(seconds=seconds)
        return [alert for alert, _ in pending_alerts(deployment.instance, watched, (AlertEvent.FAILURE,), Told(), now)]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(deployment.instance), "run_retries_enabled", property(lambda _: True))
        assert found(0) == []
        assert [alert.run_id for alert in found(3600) if alert] == [run.run_id]
        deployment.instance.add_run_tags(run.run_id, {"dagster/will_retry": "false"})
        assert [alert.run_id for alert in found(0) if alert] == [run.run_id]
        deployment.instance.add_run_tags(run.run_id, {"dagster/will_retry": "true"})
        assert found(540) == []
        assert [alert.run_id for alert in found(3600) if alert] == [run.run_id], "its code location does not load"
        deployment.instance.add_run_tags(run.run_id, {"dagster/auto_retry_run_id": "another"})
        assert found(0) == found(3600) == [None]


def test_a_run_of_something_else_that_dagster_retries_holds_up_no_failure(instance: dg.DagsterInstance) -> None:
    def failed(job: str, will_retry: str) -> str:
        definition = dg.GraphDefinition(name=job).to_job()
        run = instance.create_run_for_job(definition, tags={"dagster/will_retry": will_retry})
        instance.report_run_failed(run)
        return run.run_id

    failed("foreign", "true")
    ours = failed("trips_ingest", "false")
    watched = Watched("trips", ("trips_ingest",))
    found = list(pending_alerts(instance, watched, (AlertEvent.FAILURE,), Told(), datetime.now(UTC)))
    assert [alert and alert.run_id for alert, _ in found] == [None, ours]


def test_what_stands_at_the_position_of_a_deleted_run_is_told(deploy: Deploy, receiver: Receiver) -> None:
    deployment = deploy(alerts=[WEBHOOK | {"events": ["failure", "quarantine"]}])
    alerts(deployment)

    @dg.op
    def refuse() -> None:
        refused = dg.AssetObservation(deployment.names.batches, partition="d1", metadata={REFUSED: True})
        dg.OpExecutionContext.get().log_event(refused)
        raise dg.Failure

    @dg.job(name="trips_ingest")
    def refusing() -> None:
        refuse()

    for _ in range(2):
        run = refusing.execute_in_process(instance=deployment.instance, raise_on_error=False)
        alerts(deployment)
        assert sorted(alert["event"] for alert in receiver.take()) == ["failure", "quarantine"]
        deployment.instance.delete_run(run.run_id)
        alerts(deployment)
        assert receiver.take() == []


UNREADABLE = [None, "", "{}", "[1]", '{"failure": "x", "batch": 0}', '{"failure": 0, "batch": 0, "red_checks": ["a"]}']


@pytest.mark.parametrize("cursor", UNREADABLE)
def test_an_unreadable_cursor_says_nothing(cursor: str | None) -> None:
    assert Told.decode(cursor) is None


def test_a_cursor_of_before_checks_were_resolved_is_read() -> None:
    told = Told.decode('{"failure": 1, "batch": 2, "red_checks": {"versions": ["a"]}}')
    assert told == Told(1, 2, {"versions": ("a",)})

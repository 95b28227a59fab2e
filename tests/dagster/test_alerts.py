"""Alerts: each event once, to every kind of channel, also after a restart and after a channel that was down."""

from __future__ import annotations

import importlib
import json
import os
import socketserver
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import ValidationError

from lance_ops.dagster.alerts import sending, sensor
from lance_ops.dagster.alerts.alert import Alert
from lance_ops.dagster.alerts.pending import Told, Watched, pending_alerts
from lance_ops.dagster.alerts.sending import send
from lance_ops.dagster.declaration import AlertChannel, AlertEvent
from lance_ops.dagster.evaluations import causes_of_red, not_looked_warning
from lance_ops.dagster.in_process import CodeLocation, Ticked
from lance_ops.dagster.landing import failed_run_checks
from lance_ops.dagster.ops import launch
from lance_ops.errors import AlertNotSent, ConfigError, MissingPackage
from lance_ops.maintenance.health import LastChange, last_change
from lance_ops.snapshot import Snapshot
from lance_ops.verbs import Compact
from tests.dagster.alert_receiver import SECRET, Receiver, receiving, serving
from tests.dagster.deployment import Deploy, Deployment, values

pytestmark = pytest.mark.dagster

WEBHOOK = {"webhook": {"url": "${ALERT_URL}", "headers": {"Authorization": "Bearer ${ALERT_TOKEN}"}}}
JUNK = b"this is no Parquet"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as received:
        monkeypatch.setenv("ALERT_URL", received.url)
        monkeypatch.setenv("ALERT_TOKEN", "a-token")
        monkeypatch.setenv("DAGSTER_WEBSERVER_URL", "https://dagster.example")
        yield received


def land_junk(deployment: Deployment, key: str) -> Path:
    path = deployment.land(key, range(1))
    times = path.stat()
    path.write_bytes(JUNK)
    os.utime(path, (times.st_atime, times.st_mtime))
    return path


def alerts(deployment: Deployment, channel: str = "webhook") -> Ticked:
    return deployment.tick(f"alerts_{channel}")


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


def fail(deployment: Deployment, *, evaluates_checks: bool = True) -> None:
    """Run an ingestion that fails: the files of its partition are not there.

    One whose process dies before the end evaluates none of the checks that it planned.
    """
    deployment.instance.add_dynamic_partitions("trips_batches", ["gone"])
    with pytest.MonkeyPatch.context() as patched:
        if not evaluates_checks:
            patched.setattr(failed_run_checks, "report_checks", lambda *_: None)
        deployment.location.run("trips_ingest", tags={"dagster/partition": "gone"}, raise_on_error=False)


def evaluate(
    deployment: Deployment,
    check: str,
    *,
    passed: bool,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    causes: tuple[str, ...] = (),
) -> None:
    """Record a check's result."""
    deployment.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            deployment.names.head,
            check,
            passed,
            causes_of_red(causes),
            severity=severity,
            description=f"{check} is not as it should be",
        )
    )


def test_failed_runs_and_red_checks_are_told_once_each(deploy: Deploy, receiver: Receiver) -> None:
    deployment = deploy(alerts=[WEBHOOK])
    alerts(deployment)
    fail(deployment)
    alerts(deployment)
    (told,) = receiver.take()
    assert (told["event"], told["title"], told["version"]) == ("failure", "a run of trips_ingest failed", None)
    assert "have no such files" in told["reason"]
    deployment.fill(2)
    evaluate(deployment, "versions", passed=False)
    fail(deployment, evaluates_checks=False)  # it planned the check, and did not come to it
    alerts(deployment)
    evaluate(deployment, "versions", passed=False)
    evaluate(deployment, "landing_readable", passed=False, severity=dg.AssetCheckSeverity.WARN)
    alerts(deployment)
    failed, red = receiver.take()
    assert (failed["event"], red["title"], red["version"]) == ("failure", "check versions is red", 2)
    assert red["reason"] == "versions is not as it should be" and "trips_checks" in red["remedy"]
    evaluate(deployment, "versions", passed=True)
    alerts(deployment)
    assert receiver.take() == []
    evaluate(deployment, "versions", passed=False)
    alerts(deployment)
    assert [alert["title"] for alert in receiver.take()] == ["check versions is red"], "it is red anew"


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
    assert told(1.5) == [], "an external writer deleted a row"
    assert [event for event, _ in told(9)] == ["freshness"], "no row has changed since"


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


def test_what_the_first_tick_could_not_send_is_sent_by_the_next(deploy: Deploy, receiver: Receiver) -> None:
    receiver.status = 503
    deployment = deploy(alerts=[WEBHOOK])
    evaluate(deployment, "versions", passed=False)
    first = alerts(deployment)
    assert first.skip_message is not None and "HTTP 503" in first.skip_message
    fail(deployment, evaluates_checks=False)
    receiver.status = 200
    alerts(deployment)
    assert [alert["event"] for alert in receiver.take()] == ["failure", "check"]


@pytest.mark.parametrize(
    "fault", [500, 302, b"this is no HTTP\r\n\r\n", None], ids=["500", "302", "garbage", "silence"]
)
def test_a_webhook_at_fault_is_asked_once_a_tick_and_told_each_alert_once(
    deploy: Deploy, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, fault: int | bytes | None
) -> None:
    monkeypatch.setattr(sending, "_TIMEOUT_SECONDS", 1.5)
    deployment = deploy(alerts=[WEBHOOK])
    alerts(deployment)
    evaluate(deployment, "small_fragments", passed=False)
    evaluate(deployment, "versions", passed=False)
    receiver.next_answers = [200, fault, fault]
    said = alerts(deployment).skip_message or ""
    assert "the webhook at 127.0.0.1 did not take an alert" in said and SECRET not in said
    assert receiver.num_requests == 2
    with pytest.raises(AlertNotSent, match=r"the webhook at 127\.0\.0\.1"):
        alerts(deployment)
    assert receiver.num_requests == 3
    alerts(deployment)
    alerts(deployment)
    told = [alert["title"] for alert in receiver.take()]
    assert sorted(told) == ["check small_fragments is red", "check versions is red"]
    assert len({headers["Idempotency-Key"] for headers in receiver.headers}) == 2


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_alert_that_is_refused_for_good_does_not_hold_up_the_others(
    deploy: Deploy, receiver: Receiver, status: int
) -> None:
    deployment = deploy(alerts=[WEBHOOK])
    alerts(deployment)
    evaluate(deployment, "small_fragments", passed=False)
    evaluate(deployment, "versions", passed=False)
    receiver.next_answers = [status]
    said = alerts(deployment).skip_message or ""
    assert said.startswith("1 alerts were sent; 1 alerts are left out") and f"HTTP {status}" in said
    assert len(receiver.take()) == 1 and receiver.num_requests == 2
    assert alerts(deployment).skip_message == "nothing to tell"


@pytest.mark.parametrize("status", [401, 404, 408, 429])
def test_alerts_wait_for_a_channel_that_is_to_be_mended(deploy: Deploy, receiver: Receiver, status: int) -> None:
    deployment = deploy(alerts=[WEBHOOK])
    alerts(deployment)
    evaluate(deployment, "versions", passed=False)
    receiver.next_answers = [status]
    with pytest.raises(AlertNotSent, match=f"HTTP {status}"):
        alerts(deployment)
    alerts(deployment)
    assert len(receiver.take()) == 1


def test_an_error_of_another_library_keeps_what_was_sent(
    deploy: Deploy, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy(alerts=[WEBHOOK])
    alerts(deployment)
    evaluate(deployment, "small_fragments", passed=False)
    evaluate(deployment, "versions", passed=False)
    errors: list[Exception | None] = [None, RuntimeError("a secret")]

    def failing(*args: Any) -> None:
        error = errors.pop(0) if errors else None
        if error is not None:
            raise error
        send(*args)

    monkeypatch.setattr(sensor, "send", failing)
    said = alerts(deployment).skip_message or ""
    assert "RuntimeError" in said and "a secret" not in said
    alerts(deployment)
    assert len(receiver.take()) == 2 and receiver.num_requests == 2


def test_a_mail_of_a_file_whose_name_is_no_text_is_made() -> None:
    mail = {"to": ["a@x.example"], "sender": "b@x.example", "host": "127.0.0.1", "port": 1, "security": "none"}
    with pytest.raises(AlertNotSent, match="ConnectionRefusedError"):
        send(channel(email=mail), replace(ALERT, title="the file \udcff.csv"))


def test_a_mail_with_line_breaks_in_its_title_or_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replace(ALERT, title="a run\nof x failed").subject() == "[trips] a run of x failed"
    monkeypatch.setenv("SENDER", "lake@x.example\nBcc: all@x.example")
    mail = {"to": ["a@x.example"], "sender": "${SENDER}", "host": "127.0.0.1", "port": 1, "security": "none"}
    with pytest.raises(ConfigError, match=r"alerts\.email: sender or to"):
        send(channel(email=mail), ALERT)


def test_a_webhook_that_is_down_fails_no_run(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)) as port:
        closed = f"http://127.0.0.1:{port}/{SECRET}"
    monkeypatch.setenv("ALERT_URL", closed)
    monkeypatch.setenv("ALERT_TOKEN", "a-token")
    deployment = deploy(alerts=[WEBHOOK])
    alerts(deployment)
    deployment.land("a", range(3))
    deployment.tick()
    assert deployment.data.count_rows() == 3
    evaluate(deployment, "versions", passed=False)
    with pytest.raises(AlertNotSent, match="ConnectionRefusedError|URLError"):
        alerts(deployment)


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
        deployment.instance.add_run_tags(run.run_id, {"dagster/will_retry": "true"})
        assert found(0) == [None]
        deployment.instance.add_run_tags(run.run_id, {"dagster/will_retry": "false"})
        assert [alert.run_id for alert in found(0) if alert] == [run.run_id]


UNREADABLE = [None, "", "{}", "[1]", '{"failure": "x", "batch": 0}', '{"failure": 0, "batch": 0, "red_checks": ["a"]}']


@pytest.mark.parametrize("cursor", UNREADABLE)
def test_an_unreadable_cursor_says_nothing(cursor: str | None) -> None:
    assert Told.decode(cursor) is None


ALERT = Alert(
    AlertEvent.CHECK, "trips", "1", "check valid is red", "s3://user:pass@host/<!channel>", "Mend it.", 3, run_id="r"
)


def channel(**declared: Any) -> AlertChannel:
    return AlertChannel.model_validate(declared)


def test_a_redirect_is_refused_and_the_url_must_be_http(receiver: Receiver) -> None:
    receiver.status = 307
    with pytest.raises(AlertNotSent, match="HTTP 307"):
        send(channel(**WEBHOOK), ALERT)
    with pytest.raises(ConfigError, match=r"alerts\.webhook\.url"):
        send(channel(webhook={"url": "file:///etc/passwd"}), ALERT)
    with pytest.raises(ConfigError, match="NOT_SET is not set"):
        send(channel(webhook={"url": "${NOT_SET}"}), ALERT)


def test_mail_is_sent_by_smtp() -> None:
    got: list[bytes] = []

    class Smtp(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            in_data = False
            for line in self.rfile:
                got.append(line)
                in_data = (in_data and line != b".\r\n") or line.upper() == b"DATA\r\n"
                if line.upper() == b"DATA\r\n":
                    self.wfile.write(b"354 go on\r\n")
                elif not in_data:
                    self.wfile.write(b"250 fine\r\n")
                if line.upper() == b"QUIT\r\n":
                    return

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Smtp)) as port:
        mail = {"to": ["a@x.example", "b@x.example"], "sender": "lake@x.example", "host": "127.0.0.1", "port": port}
        send(channel(email=mail | {"security": "none"}), ALERT, "https://dagster.example/")
    text = b"".join(got).decode()
    assert "Subject: [trips] check valid is red\r\n" in text and "Run: https://dagster.example/runs/r\r\n" in text
    assert text.count("rcpt TO:") == 2 and f"Message-ID: <{ALERT.key}@lance-ops>" in text
    assert "user:pass" not in text
    with pytest.raises(AlertNotSent, match="the mail server 127.0.0.1 did not take an alert"):
        send(channel(email=mail | {"security": "none"}), ALERT)


@pytest.mark.parametrize("kind", ["slack", "teams"])
def test_dagsters_own_libraries_tell_slack_and_teams(kind: str, receiver: Receiver) -> None:
    pytest.importorskip({"slack": "dagster_slack", "teams": "dagster_msteams"}[kind])
    declared = {
        "slack": {"channel": "#data", "token": "${ALERT_TOKEN}", "api_url": f"{receiver.url}/"},
        "teams": {"url": "${ALERT_URL}"},
    }
    to = channel(**{kind: declared[kind]})
    send(to, ALERT)
    (body,) = receiver.take()
    assert "&lt;!channel&gt;" in json.dumps(body) and "pass@" not in json.dumps(body)
    receiver.answer = b'{"ok": false, "error": "channel_not_found"}'
    receiver.status = 200 if kind == "slack" else 404
    with pytest.raises(AlertNotSent, match="channel_not_found" if kind == "slack" else "127.0.0.1") as refused:
        send(to, ALERT)
    assert SECRET not in str(refused.value) and "a-token" not in str(refused.value)
    assert not refused.value.is_final
    if kind == "slack":
        receiver.answer = b'{"ok": false, "error": "msg_too_long"}'
        with pytest.raises(AlertNotSent) as refused:
            send(to, ALERT)
        assert refused.value.is_final
    receiver.next_answers = [b"this is no HTTP\r\n\r\n"] * 3
    with pytest.raises(AlertNotSent):
        send(to, ALERT)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without(name: str) -> Any:
        if name == "dagster_slack":
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr("lance_ops.core.optional_packages.import_module", without)
    with pytest.raises(MissingPackage, match=r"lance-ops\[alerts\]"):
        send(channel(slack={"channel": "#data", "token": "t"}), ALERT)


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ([{"events": ["failure"]}], "one of slack, teams, email and webhook"),
        ([{"webhook": {"url": "u"}, "teams": {"url": "u"}}], "one of slack, teams, email and webhook"),
        ([{"webhook": {"url": "u"}}, {"webhook": {"url": "v"}}], "two channels of alerts are named webhook"),
        ([{"webhook": {"url": "u"}, "name": "On call"}], "lower case"),
        ([{"webhook": {"url": "u"}, "events": ["success"]}], "failure"),
    ],
)
def test_a_channel_that_is_none_is_refused(deploy: Deploy, declared: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        deploy(alerts=declared)


def test_a_declared_secret_is_not_shown() -> None:
    assert "hush" not in repr(channel(webhook={"url": "https://x.example/hush", "headers": {"A": "hush"}}))
    assert "hush" not in repr(channel(slack={"channel": "#data", "token": "hush"}))

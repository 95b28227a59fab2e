"""How alerts are sent to every kind of channel, and what becomes of those that a channel does not take."""

from __future__ import annotations

import importlib
import json
import socketserver
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from lance_ops.dagster.alerts import sending, sensor
from lance_ops.dagster.alerts.alert import Alert
from lance_ops.dagster.alerts.pending import Told
from lance_ops.dagster.alerts.sending import send
from lance_ops.dagster.declaration import AlertChannel, AlertEvent
from lance_ops.errors import AlertNotSent, ConfigError, MissingPackage
from tests.dagster.alert_receiver import SECRET, Receiver, serving
from tests.dagster.alerting import WEBHOOK, alerts, evaluate, fail
from tests.dagster.deployment import Deploy

pytestmark = pytest.mark.dagster


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


def test_a_mail_has_one_time_limit_for_all_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_MAIL_SECONDS", 0.1, raising=False)
    got: list[bytes] = []

    class SlowSmtp(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            for line in self.rfile:
                got.append(line)
                time.sleep(0.04)
                with suppress(OSError):
                    self.wfile.write(b"354 go on\r\n" if line.upper() == b"DATA\r\n" else b"250 fine\r\n")

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), SlowSmtp)) as port:
        mail = {"to": ["a@x.example"] * 9, "sender": "b@x.example", "host": "127.0.0.1", "port": port}
        with pytest.raises(AlertNotSent, match="TimeoutError|SMTPServerDisconnected"):
            send(channel(email=mail | {"security": "none"}), ALERT)
    assert b"data\r\n" not in got, "the mail was not taken"


def test_a_tick_looks_for_no_other_alert_when_its_time_is_over(
    deploy: Deploy, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, looked = [0.0], []

    def slow(*_: object) -> Iterator[tuple[None, Told]]:
        for number in range(3):
            looked.append(number)
            seconds[0] += 31
            yield None, Told()

    monkeypatch.setattr(sensor, "pending_alerts", slow)
    monkeypatch.setattr(sensor, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    alerts(deploy(alerts=[WEBHOOK]))
    assert looked == [0]


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

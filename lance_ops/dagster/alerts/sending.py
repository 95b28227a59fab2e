"""Send an alert to a declared channel, by Dagster's own libraries for Slack and Teams.

No error quotes a URL, a token or a password, and none leads to one of a client, which may.
"""

from __future__ import annotations

import html
import json
import smtplib
import ssl
import time
import urllib.error
import urllib.request
from contextlib import suppress
from email.message import EmailMessage
from http.client import HTTPException
from typing import Any, NoReturn
from urllib.parse import urlsplit

from lance_ops.core.errors import AlertNotSent, ConfigError
from lance_ops.core.optional_packages import import_optional
from lance_ops.core.redaction import raise_alone
from lance_ops.dagster.alerts.alert import Alert
from lance_ops.dagster.declaration import (
    AlertChannel,
    EmailChannel,
    SlackChannel,
    TeamsChannel,
    WebhookChannel,
    expand,
    expand_all,
)

__all__ = ["send"]

_TIMEOUT_SECONDS = 10
_MAIL_SECONDS = 20
"""How long all steps of a mail may take together. Each waits for the server for ten seconds at most."""
_STATUSES_OF_CHANNEL = frozenset([401, 403, 404, 405, 407, 408, 410, 423, 425, 429])
"""Answers of HTTP below 500 that say nothing of an alert: who mends the channel wants the alerts that waited."""
_FINAL_ANSWERS_OF_SLACK = frozenset(["invalid_arguments", "msg_too_long", "no_text"])
_SMTP_PORTS = {"ssl": 465, "starttls": 587, "none": 25}


def send(channel: AlertChannel, alert: Alert, webserver: str = "") -> None:
    """Send an alert; `webserver` is the base of links to runs, or empty.

    Raises `AlertNotSent` if the channel did not take it, `ConfigError` for a variable that is not set, and
    `MissingPackage` if the channel needs an extra that is not installed.
    """
    if channel.slack is not None:
        _send_to_slack(channel.slack, alert, webserver)
    if channel.teams is not None:
        _send_to_teams(channel.teams, alert, webserver)
    if channel.email is not None:
        _send_by_email(channel.email, alert, webserver)
    if channel.webhook is not None:
        _send_to_webhook(channel.webhook, alert, webserver)


def _send_to_slack(slack: SlackChannel, alert: Alert, webserver: str) -> None:
    library = import_optional("dagster_slack", "an alert in Slack", "alerts")
    errors = import_optional("slack_sdk.errors", "an alert in Slack", "alerts")
    client = library.SlackResource(token=expand(slack.token, "alerts.slack.token")).get_client()
    client.base_url = expand(slack.api_url, "alerts.slack.api_url")
    client.timeout = _TIMEOUT_SECONDS
    # Slack reads & < > as its own syntax: a file's name must not call a whole channel.
    text = html.escape(alert.text(webserver), quote=False)
    try:
        client.chat_postMessage(channel=slack.channel, text=text, mrkdwn=False)
    except (errors.SlackClientError, OSError, HTTPException) as error:
        response: Any = getattr(error, "response", None)
        reason = type(error).__name__ if response is None else response.get("error")
        _refuse(f"Slack, {slack.channel}", reason, is_final=reason in _FINAL_ANSWERS_OF_SLACK)


def _send_to_teams(teams: TeamsChannel, alert: Alert, webserver: str) -> None:
    library = import_optional("dagster_msteams", "an alert in Teams", "teams")
    url = _http_url(teams.url, "alerts.teams.url")
    card = library.Card()
    card.add_attachment(text_message=html.escape(alert.text(webserver), quote=False).replace("\n", "<br>"))
    client = library.MSTeamsResource(hook_url=url, timeout=_TIMEOUT_SECONDS).get_client()
    try:
        client.post_message(payload=card.payload)
    except OSError as error:  # the root of its transport's errors
        _refuse(f"Teams, {_host(url)}", type(error).__name__)


def _send_by_email(email: EmailChannel, alert: Alert, webserver: str) -> None:
    to, sender, host, user, password = (
        expand(text, f"alerts.email.{key}")
        for key, text in (
            ("to", ", ".join(email.to)),
            ("sender", email.sender),
            ("host", email.host),
            ("user", email.user or ""),
            ("password", email.password),
        )
    )
    message = EmailMessage()
    try:
        message["Subject"], message["From"], message["To"] = _encodable(alert.subject()), sender, to
    except ValueError:
        raise_alone(ConfigError("alerts.email: sender or to is no address of a mail, such as one with a line break"))
    message["Message-ID"] = f"<{alert.message_key}@lance-ops>"  # a mail that comes twice shows once
    message.set_content(_encodable(alert.text(webserver)))
    try:
        server = _connected(email, host)
        try:
            if user:
                server.login(user, password)
            server.send_message(message)
            with suppress(OSError):  # the server has taken the mail, whatever it says to the farewell
                server.quit()
        finally:
            server.close()
    except smtplib.SMTPResponseException as error:
        is_final = isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500  # it refuses this text
        _refuse(f"the mail server {host}", f"{type(error).__name__}, code {error.smtp_code}", is_final=is_final)
    except OSError as error:  # every other error of smtplib is one, too
        _refuse(f"the mail server {host}", type(error).__name__)


def _encodable(text: str) -> str:
    """Return a text with question marks for what UTF-8 does not have: a file's name may hold any bytes."""
    return text.encode(errors="replace").decode()


def _connected(email: EmailChannel, host: str) -> smtplib.SMTP:
    port = email.port or _SMTP_PORTS[email.security]
    if email.security == "ssl":
        return _SmtpByTls(host, port, timeout=_TIMEOUT_SECONDS, context=ssl.create_default_context())
    server = _Smtp(host, port, timeout=_TIMEOUT_SECONDS)
    if email.security == "starttls":
        server.starttls(context=ssl.create_default_context())
    return server


class _Smtp(smtplib.SMTP):
    """Ends a mail of many slow steps: the timeout of `smtplib` holds for each step, and each recipient is one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._ends = time.monotonic() + _MAIL_SECONDS
        super().__init__(*args, **options)

    def getreply(self) -> tuple[int, bytes]:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if self.sock is not None:
            self.sock.settimeout(min(left, _TIMEOUT_SECONDS))
        return super().getreply()


class _SmtpByTls(_Smtp, smtplib.SMTP_SSL):
    """Does the same over a connection that is encrypted from its beginning."""


def _send_to_webhook(webhook: WebhookChannel, alert: Alert, webserver: str) -> None:
    url = _http_url(webhook.url, "alerts.webhook.url")
    headers = expand_all(webhook.headers, "alerts.webhook.headers")
    request = urllib.request.Request(
        url,
        json.dumps(alert.as_json(webserver)).encode(),
        {"Content-Type": "application/json", "Idempotency-Key": alert.message_key, **headers},
    )
    try:
        with urllib.request.build_opener(_NoRedirects()).open(request, timeout=_TIMEOUT_SECONDS):
            pass
    except urllib.error.HTTPError as error:
        is_final = 400 <= error.code < 500 and error.code not in _STATUSES_OF_CHANNEL
        _refuse(f"the webhook at {_host(url)}", f"HTTP {error.code}", is_final=is_final)
    except (OSError, HTTPException, ValueError) as error:  # ValueError: a URL or a header that the client refuses
        _refuse(f"the webhook at {_host(url)}", type(error).__name__)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Makes an error of a redirect: the headers may hold a secret that only the declared URL may see."""

    def redirect_request(self, *_: object) -> None:
        return None


def _http_url(text: str, key: str) -> str:
    url = expand(text, key)
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ConfigError(f"{key}: give an http or https URL")
    return url


def _host(url: str) -> str:
    return urlsplit(url).hostname or "an unknown host"


def _refuse(channel: str, reason: object, *, is_final: bool = False) -> NoReturn:
    raise_alone(AlertNotSent(channel, str(reason), is_final))

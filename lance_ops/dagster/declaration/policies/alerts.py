"""The declared channels that alerts about a dataset or a fleet go to.

    alerts:
      - slack: {channel: "#data", token: "${SLACK_TOKEN}"}
        events: [failure, quarantine]
      - webhook: {url: "${ON_CALL_URL}"}

Texts with `${NAME}` are kept as written. The sensor expands them when it sends.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, field_validator, model_validator

from lance_ops.dagster.declaration.declared_model import DeclaredModel, OptionalSection, Options

__all__ = [
    "AlertChannel",
    "AlertChannels",
    "AlertEvent",
    "EmailChannel",
    "SlackChannel",
    "TeamsChannel",
    "WebhookChannel",
]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_EMPTY_UNLESS_SET = "${DAGSTER_WEBSERVER_URL:-}"


class AlertEvent(Enum):
    """What a channel is told of."""

    FAILURE = "failure"
    CHECK = "check"
    FRESHNESS = "freshness"
    QUARANTINE = "quarantine"


class SlackChannel(DeclaredModel):
    """A channel of Slack, by `dagster-slack`."""

    channel: str = Field(description="Such as #data.")
    token: str = Field(repr=False, description="A bot's token that may write there; name it as ${NAME}.")
    api_url: str = Field(default="https://slack.com/api/", description="Where Slack's API is.")


class TeamsChannel(DeclaredModel):
    """A channel of Microsoft Teams, by `dagster-msteams`."""

    url: str = Field(repr=False, description="The channel's incoming webhook; name it as ${NAME}.")


class EmailChannel(DeclaredModel):
    """E-mail by a server that takes mail (SMTP)."""

    to: tuple[str, ...] = Field(min_length=1, description="The addresses that get the mail.")
    sender: str = Field(description="The address that the mail comes from.")
    host: str = Field(description="The mail server.")
    port: int | None = Field(default=None, ge=1, le=65535, description="Defaults to the security's own port.")
    security: Literal["ssl", "starttls", "none"] = Field(
        default="ssl", description="How the connection is encrypted; none: a relay on the same host or network."
    )
    user: str | None = Field(default=None, description="Log in as this user; null: without a login.")
    password: str = Field(default="", repr=False, description="The user's password; name it as ${NAME}.")


class WebhookChannel(DeclaredModel):
    """A URL that takes each alert as JSON in a POST request."""

    url: str = Field(repr=False, description="An http or https URL; ${NAME} is expanded. Redirects are not followed.")
    headers: Options = Field(
        default_factory=dict, repr=False, description="Such as Authorization; ${NAME} is expanded."
    )


class AlertChannel(DeclaredModel):
    """One of slack, teams, email and webhook, and the events that it is told of."""

    name: str | None = Field(
        default=None, description="Part of the sensor's name; defaults to slack, teams, email or webhook."
    )
    events: tuple[AlertEvent, ...] = Field(
        default=tuple(AlertEvent),
        min_length=1,
        description="failure: a run; check: a check turned red; freshness: `fresh` turned red; "
        "quarantine: a batch was set aside or changed.",
    )
    webserver_base_url: str = Field(
        default=_EMPTY_UNLESS_SET, description="Where people open Dagster, for links to runs; empty: no links."
    )
    slack: OptionalSection[SlackChannel] = Field(default=None, description="Tell a channel of Slack.")
    teams: OptionalSection[TeamsChannel] = Field(default=None, description="Tell a channel of Microsoft Teams.")
    email: OptionalSection[EmailChannel] = Field(default=None, description="Send mail.")
    webhook: OptionalSection[WebhookChannel] = Field(default=None, description="POST JSON to a URL.")

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str | None) -> str | None:
        if name is not None and not _NAME.fullmatch(name):
            raise ValueError("use lower case letters, digits and _")
        return name

    @model_validator(mode="after")
    def _is_one_channel(self) -> Self:
        if len(self._kinds) != 1:
            raise ValueError("give one of slack, teams, email and webhook")
        return self

    @property
    def _kinds(self) -> list[str]:
        kinds = {"slack": self.slack, "teams": self.teams, "email": self.email, "webhook": self.webhook}
        return [kind for kind, declared in kinds.items() if declared is not None]

    @property
    def label(self) -> str:
        """The given name, or the kind of channel."""
        return self.name or self._kinds[0]


def _with_distinct_labels(channels: tuple[AlertChannel, ...]) -> tuple[AlertChannel, ...]:
    labels = [channel.label for channel in channels]
    doubled = sorted({label for label in labels if labels.count(label) > 1})
    if doubled:
        raise ValueError(f"two channels of alerts are named {doubled[0]}: give one of them a name")
    return channels


AlertChannels: TypeAlias = Annotated[tuple[AlertChannel, ...], AfterValidator(_with_distinct_labels)]
"""Channels with distinct labels, because each has a sensor of its own."""

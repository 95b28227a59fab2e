"""The declared policies of a dataset: how it is maintained, and who is alerted."""

from lance_ops.dagster.declaration.policies.alerts import (
    AlertChannel,
    AlertEvent,
    EmailChannel,
    SlackChannel,
    TeamsChannel,
    WebhookChannel,
)
from lance_ops.dagster.declaration.policies.maintenance import (
    CleanupPolicy,
    CompactionPolicy,
    HealthLimits,
    IndexSpec,
    Maintenance,
    UpkeepPolicy,
    VerificationPolicy,
    checked_cron,
    checked_timezone,
)

__all__ = [
    "AlertChannel",
    "AlertEvent",
    "CleanupPolicy",
    "CompactionPolicy",
    "EmailChannel",
    "HealthLimits",
    "IndexSpec",
    "Maintenance",
    "SlackChannel",
    "TeamsChannel",
    "UpkeepPolicy",
    "VerificationPolicy",
    "WebhookChannel",
    "checked_cron",
    "checked_timezone",
]

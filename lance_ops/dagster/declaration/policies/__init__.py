"""The declared policies of a dataset: how it is maintained, and who is alerted."""

from lance_ops.dagster.declaration.policies.alerts import (
    AlertChannel,
    AlertChannels,
    AlertEvent,
    EmailChannel,
    SlackChannel,
    TeamsChannel,
    WebhookChannel,
)
from lance_ops.dagster.declaration.policies.maintenance import (
    CleanupPolicy,
    CompactionPolicy,
    Cron,
    HealthLimits,
    IndexSpec,
    Maintenance,
    Timezone,
    UpkeepPolicy,
    VerificationPolicy,
)

__all__ = [
    "AlertChannel",
    "AlertChannels",
    "AlertEvent",
    "CleanupPolicy",
    "CompactionPolicy",
    "Cron",
    "EmailChannel",
    "HealthLimits",
    "IndexSpec",
    "Maintenance",
    "SlackChannel",
    "TeamsChannel",
    "Timezone",
    "UpkeepPolicy",
    "VerificationPolicy",
    "WebhookChannel",
]

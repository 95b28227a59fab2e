"""Build the sensors of the alerts of a dataset or a fleet: one for each declared channel, with a cursor of its own.

The cursor moves past an event when the channel has taken the alert. If it does not take one, the sensor stops there and
tries again in its next tick. A process that dies between the two leaves an alert that is sent again, with the same key.
An alert that the channel refuses for good is left out, so that it does not hold up the others: the tick names it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

import dagster as dg

from lance_ops.core.errors import AlertNotSent, LanceOpsError
from lance_ops.dagster.alerts.alert import Alert
from lance_ops.dagster.alerts.pending import Told, Watched, pending_alerts
from lance_ops.dagster.alerts.sending import send
from lance_ops.dagster.declaration import AlertChannel, expand

__all__ = ["build_alert_sensors"]

_MAX_ALERTS_PER_TICK = 20
_MAX_SECONDS_PER_TICK = 30.0
"""Dagster ends a tick after 60 seconds and then keeps the old cursor; one more alert may take twenty seconds."""


def build_alert_sensors(
    watched: Watched, channels: Sequence[AlertChannel], interval_seconds: int = 30
) -> list[dg.SensorDefinition]:
    """Return a sensor `<name>_alerts_<channel>` for each channel."""
    return [_build_sensor(watched, channel, interval_seconds) for channel in channels]


def _build_sensor(watched: Watched, channel: AlertChannel, interval_seconds: int) -> dg.SensorDefinition:
    @dg.sensor(
        name=watched.names.of(f"alerts_{channel.label}"),
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Tells {channel.label} of {watched.name}: {', '.join(event.value for event in channel.events)}.",
    )
    def alerts(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        told = Told.from_cursor(context.cursor, context.instance, watched.names)
        started, num_sent = time.monotonic(), 0
        refused: list[str] = []
        pending = pending_alerts(context.instance, watched, channel.events, told, datetime.now(UTC))
        while num_sent + len(refused) < _MAX_ALERTS_PER_TICK and time.monotonic() - started < _MAX_SECONDS_PER_TICK:
            alert, after = next(pending, (None, None))
            if after is None:
                break
            if alert is not None:
                error = _sent(watched, channel, alert)
                if isinstance(error, AlertNotSent) and error.is_final:
                    context.log.error("%s, so it is left out: %s", error, alert.subject())
                    refused.append(f"{error}: {alert.subject()}")
                elif error is not None:
                    context.log.error("%s; the next tick tries again", error)
                    if num_sent + len(refused) == 0 and Told.decode(context.cursor):
                        raise error  # the tick shows as failed, and Dagster keeps the cursor
                    outcome = "; ".join([str(error), *_told_of_refused(refused)])
                    return dg.SensorResult(skip_reason=dg.SkipReason(outcome), cursor=told.encode())
                else:
                    num_sent += 1
            told = after
        sent = [f"{num_sent} alerts were sent"] if num_sent else []
        outcome = "; ".join([*sent, *_told_of_refused(refused)]) or "nothing to tell"
        return dg.SensorResult(skip_reason=dg.SkipReason(outcome), cursor=told.encode())

    return alerts


def _sent(watched: Watched, channel: AlertChannel, alert: Alert) -> LanceOpsError | None:
    """Send an alert; return the error if the channel did not take it.

    An error of another library is named by its type only, because its text may quote a secret.
    """
    try:
        send(channel, alert, expand(channel.webserver_base_url, f"{watched.name}: alerts.webserver_base_url"))
    except LanceOpsError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever it is, what was sent before stays told
        return AlertNotSent(channel.label, type(error).__name__)
    return None


def _told_of_refused(refused: Sequence[str]) -> list[str]:
    return [f"{len(refused)} alerts are left out: {refused[0]}"] if refused else []

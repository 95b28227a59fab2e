"""Tell people of what happens to a dataset or a fleet: a sensor for each declared channel, a message for each event."""

from lance_ops.dagster.alerts.pending import TOLD_BY_CHECK, Watched
from lance_ops.dagster.alerts.sensor import build_alert_sensors

__all__ = ["TOLD_BY_CHECK", "Watched", "build_alert_sensors"]

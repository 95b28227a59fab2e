"""Tell people of what happens to a dataset: one sensor for each declared channel, one message for each event."""

from lance_ops.dagster.alerts.sensor import build_alert_sensors

__all__ = ["build_alert_sensors"]

"""Dagster's runs: which assets a run materializes, whether Dagster retries it, and how long a sensor then waits."""

from __future__ import annotations

from lance_ops.dagster.runs.assets import materializes_any
from lance_ops.dagster.runs.retries import awaits_retry, was_retried
from lance_ops.dagster.runs.retry_waits import wait_before_retry

__all__ = ["awaits_retry", "materializes_any", "wait_before_retry", "was_retried"]

"""Dagster's runs: which assets a run materializes, and how long a sensor waits after one that failed."""

from __future__ import annotations

from lance_ops.dagster.runs.assets import materializes_any
from lance_ops.dagster.runs.pauses import wait_after

__all__ = ["materializes_any", "wait_after"]

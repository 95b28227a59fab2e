"""Run a command's tasks on Spark. Importing this module needs the `spark` extra."""

from __future__ import annotations

from lance_ops.spark import OnSpark, get_or_create
from lance_ops.writing import Runner

__all__ = ["start_spark"]


def start_spark(master: str) -> Runner:
    """Start a Spark session on a master, or find this process's own; it ends with the process."""
    return OnSpark(get_or_create("lance-ops", master=master))

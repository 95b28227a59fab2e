"""Read the settings of the environment's Dagster instance, and name those without which it does not keep going."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg

from lance_ops.core.errors import ConfigError
from lance_ops.core.records import dataclass

__all__ = ["InstanceSettings", "inspect_instance", "open_instance"]


@dataclass(frozen=True)
class InstanceSettings:
    """The class that stores the runs, and each lack: what goes wrong, and which setting mends it."""

    run_storage: str
    lacks: tuple[tuple[str, str], ...]


def inspect_instance() -> InstanceSettings:
    """Open the instance of `DAGSTER_HOME` and ask its run storage; raise `ConfigError` if either fails."""
    with open_instance() as instance:
        return InstanceSettings(type(instance.run_storage).__name__, tuple(_lacks(instance)))


@contextmanager
def open_instance() -> Iterator[dg.DagsterInstance]:
    """Give the instance of `DAGSTER_HOME`; raise `ConfigError` if it does not open or its run storage fails."""
    with ExitStack() as stack:
        try:
            instance = stack.enter_context(dg.DagsterInstance.get())
            instance.get_runs_count()
        except Exception as error:  # of dagster, of its configuration, or of a database's driver
            raise ConfigError(f"the Dagster instance does not open: {' '.join(str(error).split())}") from error
        yield instance


def _lacks(instance: dg.DagsterInstance) -> list[tuple[str, str]]:
    found = []
    if not instance.run_monitoring_enabled:
        found.append(
            ("a run whose process is killed keeps its pool slot for good", "set run_monitoring: {enabled: true}")
        )
    if not instance.run_launcher.supports_check_run_worker_health:
        found.append(
            (
                "a run that dies together with its code server stays as started",
                "set run_launcher: {module: lance_ops.dagster.instances.run_launcher, class: LocalRunLauncher}",
            )
        )
    if not instance.run_retries_enabled:
        found.append(("a run whose process is killed is not repeated", "set run_retries: {enabled: true}"))
    if instance.global_op_concurrency_default_limit is None:
        found.append(
            (
                "several writers of one dataset may run at once, which costs retries of commits",
                "set concurrency: {pools: {granularity: op, default_limit: 1}}",
            )
        )
    return found

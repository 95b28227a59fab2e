"""Evaluate a code location's sensors and run its jobs in this process, against a real Dagster instance.

The daemon does the same in separate processes: it adds a tick's partitions, records its events, launches its run
requests with their tags, once for each run key, and keeps its cursor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import dagster as dg

from lance_ops.core.records import dataclass

__all__ = ["CodeLocation", "Ticked"]

_QUIET: dict[str, Mapping[str, Any]] = {"console": {"config": {"log_level": "ERROR"}}}


@dataclass(frozen=True)
class Ticked:
    """The outcome of a sensor's tick. Of its requests, those whose run key the instance knows have no run."""

    new_partitions: tuple[str, ...]
    run_requests: tuple[dg.RunRequest, ...]
    events: tuple[object, ...]
    runs: tuple[dg.ExecuteInProcessResult, ...]
    skip_message: str | None


@dataclass
class CodeLocation:
    """Loaded definitions, and the cursors of their sensors."""

    definitions: dg.Definitions
    instance: dg.DagsterInstance
    cursors: dict[str, str | None] = field(default_factory=dict)

    def tick(self, sensor: str, *, raise_on_error: bool = True) -> Ticked:
        """Evaluate a sensor once and carry out its requests; `raise_on_error` is as in `run`."""
        repository = self.definitions.get_repository_def()
        definition = repository.get_sensor_def(sensor)
        with dg.build_sensor_context(
            instance=self.instance,
            instance_ref=self.instance.get_ref(),
            repository_def=repository,
            sensor_name=sensor,
            cursor=self.cursors.get(sensor),
        ) as context:
            decided = definition.evaluate_tick(context)
        added: list[str] = []
        for request in decided.dynamic_partitions_requests or []:
            self.instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
            added += request.partition_keys
        for event in decided.asset_events:
            self.instance.report_runless_asset_event(event)
        requests = decided.run_requests or []
        runs = tuple(
            self.run(
                request.job_name or definition.job_name or "",
                request.run_config.get("ops"),
                {**request.tags, **_key_tags(sensor, request)},
                raise_on_error=raise_on_error,
            )
            for request in requests
            if not self._is_launched(sensor, request)
        )
        self.cursors[sensor] = decided.cursor
        return Ticked(tuple(added), tuple(requests), tuple(decided.asset_events), runs, decided.skip_message)

    def _is_launched(self, sensor: str, request: dg.RunRequest) -> bool:
        tags = _key_tags(sensor, request)
        return bool(tags) and bool(self.instance.get_runs(dg.RunsFilter(tags=tags), limit=1))

    def run(
        self,
        job: str,
        config: Mapping[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
        *,
        raise_on_error: bool = True,
    ) -> dg.ExecuteInProcessResult:
        """Run a job with `config` by op; raise the run's error unless `raise_on_error` is False."""
        definition = self.definitions.resolve_job_def(job)
        run_config = dg.RunConfig(ops=dict(config or {}), loggers=_QUIET)
        return definition.execute_in_process(
            run_config=run_config, tags=dict(tags or {}), instance=self.instance, raise_on_error=raise_on_error
        )


def _key_tags(sensor: str, request: dg.RunRequest) -> dict[str, str]:
    """Return the tags by which the daemon finds the run of a sensor's run key."""
    return {} if request.run_key is None else {"dagster/sensor_name": sensor, "dagster/run_key": request.run_key}

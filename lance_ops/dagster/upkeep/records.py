"""What earlier runs of upkeep left on the head asset: steps that gained nothing or failed, and the bytes of a day."""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, datetime, timedelta

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head import observations_of_head
from lance_ops.dagster.runs import wait_before_retry

__all__ = ["FRUITLESS", "OUTCOMES", "SPENT_BYTES", "allowance", "fruitless_steps", "resting_steps"]

SPENT_BYTES = "lance/upkeep_bytes"
FRUITLESS = "lance/upkeep_in_vain"
OUTCOMES = "lance/upkeep_outcomes"
"""The keys of the steps that a run took, the key of the one that failed, the version that the run left, and its work.

The work is the id of the first run that attempted it; see `first_run`.
"""
_MEGABYTE = 1024**2
_LOOKED_AT = 200
"""How many observations of the head are searched for what runs of upkeep have left; verbs leave some, too."""


@dataclass(frozen=True)
class _Failures:
    """The failures of a step: the newest one, at its version, and the works in a row that met one."""

    at: datetime
    version: int
    works: set[str] = field(default_factory=set)


def fruitless_steps(instance: dg.DagsterInstance, config: DatasetConfig) -> tuple[str, ...]:
    """Return the steps that the last run of upkeep took in vain, named at the version that it left."""
    for _, observation in observations_of_head(instance, config, _LOOKED_AT):
        found = observation.metadata.get(FRUITLESS)
        if isinstance(found, dg.JsonMetadataValue) and isinstance(found.data, list):
            return tuple(map(str, found.data))
    return ()


def resting_steps(
    instance: dg.DagsterInstance, config: DatasetConfig, version: int, now: datetime, work: str | None = None
) -> tuple[str, ...]:
    """Return the keys of the steps that failed below a version so lately that they are not tried again yet.

    On a busy table, each commit makes a new version. The waits are those after runs that failed at one version. `work`
    is the calling run's work; see `first_run`. A step that it tried before does not rest: otherwise its next attempt,
    at the version of another writer, would end well without having tried the step.
    """
    failed: dict[str, _Failures] = {}
    tried_since: set[str] = set()
    for at, observation in observations_of_head(instance, config, _LOOKED_AT):
        told = observation.metadata.get(OUTCOMES)
        if not isinstance(told, dg.JsonMetadataValue) or not isinstance(told.data, dict):
            continue
        tried_since.update(map(str, told.data["taken"]))
        step = told.data["failed"]
        if step is None or step in tried_since:
            continue
        if told.data["run"] == work:
            tried_since.add(str(step))
            continue
        newest = _Failures(datetime.fromtimestamp(at, UTC), int(told.data["version"]))
        failed.setdefault(str(step), newest).works.add(str(told.data["run"]))  # a work may attempt its step again
    return tuple(
        step
        for step, newest in failed.items()
        if newest.version < version and now < newest.at + wait_before_retry(len(newest.works))
    )


def allowance(instance: dg.DagsterInstance, config: DatasetConfig) -> int | None:
    """Return the bytes that a run may rewrite now, None if nothing bounds it."""
    policy = config.maintenance.upkeep
    if policy is None:
        return None
    limits = []
    if policy.max_megabytes_per_run is not None:
        limits.append(policy.max_megabytes_per_run * _MEGABYTE)
    if policy.max_megabytes_per_day is not None:
        since = datetime.now(UTC) - timedelta(days=1)
        spent = sum(_spent(each) for _, each in observations_of_head(instance, config, since=since))
        limits.append(max(policy.max_megabytes_per_day * _MEGABYTE - spent, 0))
    return min(limits, default=None)


def _spent(observation: dg.AssetObservation) -> int:
    found = observation.metadata.get(SPENT_BYTES)
    return found.value or 0 if isinstance(found, dg.IntMetadataValue) else 0

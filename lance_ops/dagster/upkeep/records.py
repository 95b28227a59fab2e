"""What earlier runs of upkeep left on the head asset: steps that gained nothing, and the bytes of a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head import observations_of_head

__all__ = ["FRUITLESS", "SPENT_BYTES", "allowance", "fruitless_steps"]

SPENT_BYTES = "lance/upkeep_bytes"
FRUITLESS = "lance/upkeep_in_vain"
_MEGABYTE = 1024**2
_LOOKED_AT = 200
"""How many observations of the head are read: those of a day, and clean-up leaves some, too."""


def fruitless_steps(instance: dg.DagsterInstance, config: DatasetConfig) -> tuple[str, ...]:
    """Return the steps that the last run of upkeep took in vain, named at the version that it left."""
    for _, observation in observations_of_head(instance, config, _LOOKED_AT):
        found = observation.metadata.get(FRUITLESS)
        if isinstance(found, dg.JsonMetadataValue) and isinstance(found.data, list):
            return tuple(map(str, found.data))
    return ()


def allowance(instance: dg.DagsterInstance, config: DatasetConfig) -> int | None:
    """Return the bytes that a run may rewrite now, None if nothing bounds it.

    The bytes of the last 24 hours are those of the newest 200 observations of the head; older ones are not counted.
    """
    policy = config.maintenance.upkeep
    if policy is None:
        return None
    limits = []
    if policy.max_megabytes_per_run is not None:
        limits.append(policy.max_megabytes_per_run * _MEGABYTE)
    if policy.max_megabytes_per_day is not None:
        since = datetime.now(UTC) - timedelta(days=1)
        spent = sum(_spent(each) for _, each in observations_of_head(instance, config, _LOOKED_AT, since))
        limits.append(max(policy.max_megabytes_per_day * _MEGABYTE - spent, 0))
    return min(limits, default=None)


def _spent(observation: dg.AssetObservation) -> int:
    found = observation.metadata.get(SPENT_BYTES)
    return found.value or 0 if isinstance(found, dg.IntMetadataValue) else 0

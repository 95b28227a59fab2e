"""Read what the runs of upkeep have recorded of the cost of a dataset's compactions."""

from __future__ import annotations

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head.observations import observations_of_head
from lance_ops.maintenance.debt import PastCosts

__all__ = ["PAST_COSTS", "past_costs"]

PAST_COSTS = "lance/upkeep_past_costs"
"""The key of metadata that each run of upkeep leaves on the head."""

_LOOKED_AT = 200
"""How many observations of the head are searched; verbs and clean-ups leave some each day, too."""


def past_costs(instance: dg.DagsterInstance, config: DatasetConfig) -> PastCosts:
    """Return what the last run of upkeep left, for the next prices; nothing if no recent run has left any."""
    for _, observation in observations_of_head(instance, config, _LOOKED_AT):
        found = observation.metadata.get(PAST_COSTS)
        if isinstance(found, dg.JsonMetadataValue):
            return PastCosts.from_facts(found.data)
    return PastCosts()

"""Tell how many bytes of files no version named when a clean-up listed a dataset's files last."""

from __future__ import annotations

from typing import Any

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames

__all__ = ["ORPHAN_BYTES", "counted_orphans"]

ORPHAN_BYTES = "lance/orphan_bytes"
"""What observations of the head tell that a clean-up or its preview left; the facts of the verb have this name."""

_COUNTED_AT = "lance/orphans_counted_at"
_LOOKED_AT = 50
"""How many observations of the head are searched; verbs and upkeep leave some each day."""


def counted_orphans(instance: dg.DagsterInstance, config: DatasetConfig) -> dict[str, Any]:
    """Return the newest count as metadata, with its time; nothing if no clean-up was observed lately."""
    head = DatasetNames(config.name).head
    for record in instance.fetch_observations(dg.AssetRecordsFilter(head), limit=_LOOKED_AT).records:
        observed = record.asset_observation
        found = None if observed is None else observed.metadata.get(ORPHAN_BYTES)
        if isinstance(found, dg.IntMetadataValue):
            return {ORPHAN_BYTES: found, _COUNTED_AT: dg.MetadataValue.timestamp(record.timestamp)}
    return {}

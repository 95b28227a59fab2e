"""Tell how many bytes of orphans, files that no version names, the last clean-up left."""

from __future__ import annotations

from typing import Any

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head.observations import observations_of_head

__all__ = ["ORPHAN_BYTES", "counted_orphans"]

ORPHAN_BYTES = "lance/orphan_bytes"
"""The key of metadata for the bytes of orphans that a clean-up left, or that its preview found."""

_COUNTED_AT = "lance/orphans_counted_at"
_LOOKED_AT = 50
"""How many observations of the head are searched; verbs and upkeep leave some each day."""


def counted_orphans(instance: dg.DagsterInstance, config: DatasetConfig) -> dict[str, Any]:
    """Return the newest count and its time as metadata; nothing if none of the newest observations has one."""
    for seconds, observation in observations_of_head(instance, config, _LOOKED_AT):
        found = observation.metadata.get(ORPHAN_BYTES)
        if isinstance(found, dg.IntMetadataValue):
            return {ORPHAN_BYTES: found, _COUNTED_AT: dg.MetadataValue.timestamp(seconds)}
    return {}

"""The external assets of a dataset: the head, and one for each declared index."""

from __future__ import annotations

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames

__all__ = ["MAINTAINED_URI", "head_spec", "index_specs"]

MAINTAINED_URI = "lance/maintained_uri"
"""Metadata of a head: where the table is that the dataset's own schedule or sensor maintains, as it is declared."""


def head_spec(config: DatasetConfig) -> dg.AssetSpec:
    """Return the head, an external asset: each committed version is one materialization, whichever writer made it."""
    names = DatasetNames(config.name)
    metadata = {"dagster/table_name": config.name, "dagster/storage_kind": "lance"}
    if config.maintenance.is_automatic:
        metadata[MAINTAINED_URI] = config.uri
    return dg.AssetSpec(
        names.head,
        deps=[names.batches] if config.raw is not None else [],
        description=config.description or f"The table at {config.uri}: each version is one materialization.",
        owners=list(config.owners),
        group_name=config.group_name,
        tags=config.tags,
        kinds=config.asset_kinds,
        metadata=metadata,
    )


def index_specs(config: DatasetConfig) -> list[dg.AssetSpec]:
    """Return the assets of the declared indices: each change of an index's files is one materialization."""
    names = DatasetNames(config.name)
    return [
        dg.AssetSpec(
            names.index(index.index_name),
            deps=[names.head],
            description=f"The index {index.index_name} on column {index.column} of {config.name}.",
            owners=list(config.owners),
            group_name=config.group_name,
            tags=config.tags,
            kinds=config.asset_kinds,
        )
        for index in config.indices
    ]

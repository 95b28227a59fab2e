"""The ops that build the declared indices, extend them to rows that they do not cover, and drop an index."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from lance_ops import verbs
from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops.planned import Planned, planned_op

__all__ = ["DropIndex", "Reindex", "drop_index_op", "reindex_op"]


class Reindex(Planned):
    """Which of the declared indices to work on, and how."""

    indices: list[str] = Field(default_factory=list, description="Names of declared indices; none means all.")
    rebuild: bool = Field(default=False, description="Train anew instead of merging the missing rows in.")


class DropIndex(Planned):
    """The index to drop. Maintenance builds a declared index again."""

    index: str = Field(default="", description="The index's name.")


def reindex_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that brings a dataset's declared indices to full coverage."""
    declared = {index.index_name: index for index in config.indices}

    def to_verb(asked: Reindex) -> verbs.Verb:
        unknown = sorted(set(asked.indices) - set(declared))
        if unknown:
            raise InvalidInput(f"{config.name} declares no index {unknown[0]}; it declares {sorted(declared)}")
        create = {name: f"{index.column}:{index.type}" for name, index in declared.items()}
        return verbs.Reindex(tuple(asked.indices or declared), create, asked.rebuild)

    return planned_op(config, Reindex, verbs.Reindex, "Build missing indices and cover new rows.", to_verb)


def drop_index_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that drops an index."""
    return planned_op(config, DropIndex, verbs.DropIndex, "Drop an index.")

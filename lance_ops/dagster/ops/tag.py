"""The op that creates, moves and deletes tags; clean-up keeps tagged versions."""

from __future__ import annotations

from typing import Literal

import dagster as dg
from pydantic import Field

from lance_ops import verbs
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops.planned import Planned, planned_op

__all__ = ["Tag", "tag_op"]


class Tag(Planned):
    """A tag's name and the version that it names."""

    name: str = ""
    version: int | None = Field(default=None, ge=1, description="Defaults to the newest version.")
    action: Literal["create", "move", "delete"] = "create"


def tag_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that creates, moves and deletes tags of a dataset."""

    def to_verb(asked: Tag) -> verbs.Verb:
        return verbs.Tag(asked.name, asked.version, asked.action)

    return planned_op(config, Tag, verbs.Tag, "Name a version, so that clean-up keeps it.", to_verb)

"""The op that creates, moves and deletes tags; clean-up keeps tagged versions."""

from __future__ import annotations

from typing import Any, Literal

import dagster as dg
from pydantic import Field

from lance_ops.api.lance_dataset import Tags
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.ops.verb import Work, verb_op

__all__ = ["Tag", "tag_op"]


class Tag(dg.Config):
    """A tag's name and the version that it names."""

    name: str
    version: int | None = Field(default=None, ge=1, description="Defaults to the newest version.")
    action: Literal["create", "move", "delete"] = "create"


def tag_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that creates, moves and deletes tags of a dataset."""
    head = DatasetNames(config.name).head

    def tag(work: Work, asked: Tag) -> dict[str, Any]:
        tags = Tags(work.snapshot)
        match asked.action:
            case "create":
                tags.create(asked.name, asked.version)
            case "move":
                tags.update(asked.name, asked.version)
            case "delete":
                tags.delete(asked.name)
        version = asked.version or work.snapshot.version
        metadata: dict[str, Any] = {"lance/tag": asked.name, "lance/action": asked.action, "lance/version": version}
        # A tag commits no version, so an observation of the head records it.
        description = f"{asked.action} tag {asked.name}"
        work.context.log_event(dg.AssetObservation(head, description=description, metadata=metadata))
        return metadata

    return verb_op(config, "tag", "Name a version, so that clean-up keeps it.", tag, Tag)

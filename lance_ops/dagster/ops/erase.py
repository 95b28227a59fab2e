"""The op that erases a subject's rows from every retained version, tag and branch, and keeps the proof."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from lance_ops import verbs
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.ops.planned import Planned, planned_op

__all__ = ["Erase", "erase_op"]


class Erase(Planned):
    """Whose rows go, and what may go with them. Dagster keeps this configuration: prefer a file of keys."""

    predicate: str | None = Field(default=None, description="A SQL condition. It stays in the run's configuration.")
    key_files: list[str] = Field(
        default_factory=list, description="Instead: raw files, or one dataset (.lance), that hold the keys of the rows."
    )
    on: list[str] = Field(default_factory=list, description="The columns of the key, in both.")
    reason: str = Field(default="", description="Stays in the report and the transaction: do not name the subject.")
    remove_tags: bool = Field(default=False, description="Remove the tags on versions that hold the rows.")
    rewrite_branches: bool = Field(default=False, description="Erase on other branches, too.")
    delete_unverified: bool = Field(
        default=False, description="Also young files that no version names; only while nothing else writes."
    )
    at_most_rows: int | None = Field(default=None, description="Refuse when more rows match.", ge=0)


def erase_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that erases rows of a dataset. Its run fails if the erasure is not proven."""
    return planned_op(config, Erase, verbs.Erase, "Erase rows from every version, tag and branch, and prove it.")

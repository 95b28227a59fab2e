"""A dataset that a survey found, as the declaration that a new project gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any

import pyarrow as pa

from lance_ops.core.records import dataclass

__all__ = ["LAKE", "LANDING", "Proposal", "columns_sentence", "dataset_name", "with_distinct_names"]

LAKE = "LANCE_OPS_LAKE"
"""The variable that holds the folder of a project's tables."""
LANDING = "LANCE_OPS_LANDING"
"""The variable that holds the folder of a project's raw files."""
_SHOWN_COLUMNS = 12


@dataclass(frozen=True)
class Proposal:
    """A dataset's declaration: its table's path beneath `LAKE`, its raw files, its indices, and what was seen."""

    name: str
    table: str
    raw: Mapping[str, Any] | None = None
    indices: tuple[Mapping[str, str], ...] = ()
    write: Mapping[str, Any] = field(default_factory=dict)
    comments: tuple[str, ...] = field(default=(), compare=False)
    doubts: tuple[str, ...] = field(default=(), compare=False)
    """What somebody must decide; the declaration holds these as comments, too."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the component."""
        found: dict[str, Any] = {"name": self.name, "uri": f"${{{LAKE}}}/{self.table}"}
        if self.raw is not None:
            found["raw"] = dict(self.raw)
        if self.write:
            found["write"] = dict(self.write)
        if self.indices:
            found["indices"] = [dict(index) for index in self.indices]
        return found


def dataset_name(*parts: str) -> str:
    """Return a dataset's name made of paths: lower case, with only the characters that a name may have."""
    segments = [_segment(segment) for part in parts for segment in part.split("/")]
    return "/".join(segment for segment in segments if segment) or "data"


def columns_sentence(schema: pa.Schema, of_file: str = "") -> str:
    """Name the first columns with their types; `of_file` follows the word "Columns"."""
    shown = [f"{field.name} {field.type}" for field in list(schema)[:_SHOWN_COLUMNS]]
    more = len(schema) - len(shown)
    return f"Columns{of_file}: {', '.join(shown)}{f', and {more} more' if more else ''}"


def with_distinct_names(proposals: Iterable[Proposal]) -> tuple[Proposal, ...]:
    """Return the proposals with a number behind each name that Dagster could not tell from an earlier one."""
    taken: set[str] = set()
    found = []
    for proposal in proposals:
        name, number = proposal.name, 2
        while name.replace("/", "_") in taken:
            name, number = f"{proposal.name}_{number}", number + 1
        taken.add(name.replace("/", "_"))
        found.append(proposal if name == proposal.name else replace(proposal, name=name))
    return tuple(found)


def _segment(text: str) -> str:
    words = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return f"d_{words}" if words[:1].isdigit() else words

"""Draw the versions of a table: a timeline of what each one did, and how the table grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Protocol

from lance_ops.charts import Mark, Panel, size_text, trend_chart, version_chart
from lance_ops.refs import branch_of, list_branches, reference_store
from lance_ops.snapshot import Snapshot

__all__ = ["ChartedVersion", "branches_begun", "trend_svg", "version_svg"]

_NOTE_LENGTH = 100
"""How many characters the note of a version has."""

_KINDS = {
    "rows added": ("Append", "Overwrite"),
    "rows changed": ("Update", "Restore"),
    "rows deleted": ("Delete",),
    "columns": ("Merge", "Project", "DataReplacement"),
    "upkeep": ("Rewrite", "CreateIndex", "ReserveFragments"),
    "other": (),
}
"""The operations of each colour; `other` has those that no colour names."""


class ChartedVersion(Protocol):
    """What the charts show of a version. `read_amplification` is None if it is unknown."""

    @property
    def version(self) -> int: ...
    @property
    def moment(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def num_fragments(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def read_amplification(self) -> float | None: ...


def trend_svg(name: str, past: Sequence[ChartedVersion]) -> str:
    """Return how rows, bytes, fragments and the cost of a read grew from version to version."""
    newest = past[-1]
    amplification = newest.read_amplification
    panels = [
        Panel("rows", [each.num_rows for each in past], f"{newest.num_rows:,}"),
        Panel("bytes", [each.size_bytes for each in past], size_text(newest.size_bytes)),
        Panel("fragments", [each.num_fragments for each in past], f"{newest.num_fragments:,}"),
        Panel(
            "a read costs, against one without debt",
            [each.read_amplification for each in past],
            "" if amplification is None else f"{amplification:.2f} times",
            floor=1.0,
        ),
    ]
    return trend_chart(f"{name} over its versions", f"version {past[0].version}", f"{newest.version}", panels)


def version_svg(name: str, past: Sequence[ChartedVersion], branches: Mapping[int, Sequence[str]]) -> str:
    """Return the versions with their operations, tags, and the branches that began at them."""
    kind_of = {operation: kind for kind, operations in _KINDS.items() for operation in operations}
    marks = [
        Mark(
            each.version,
            kind_of.get(each.operation, "other"),
            shorten(f"version {each.version}: {each.operation} {each.moment} {each.message}", _NOTE_LENGTH),
            each.tags,
            tuple(branches.get(each.version, ())),
        )
        for each in past
    ]
    return version_chart(f"versions of {name}", marks, tuple(_KINDS))


def branches_begun(snapshot: Snapshot) -> dict[int, list[str]]:
    """Return the branches that began at each version of the snapshot's own branch."""
    found: dict[int, list[str]] = {}
    for name, branch in sorted(list_branches(reference_store(snapshot)).items()):
        if branch.parent_branch == branch_of(snapshot):
            found.setdefault(branch.parent_version, []).append(name)
    return found

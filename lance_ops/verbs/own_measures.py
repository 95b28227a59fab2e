"""Measures of a table that some verbs change and the sizes of a version do not show: versions, references, indices."""

from __future__ import annotations

from collections.abc import Callable

from lance_ops.api import LanceDataset
from lance_ops.core.records import dataclass
from lance_ops.maintenance.health import index_coverage
from lance_ops.refs import list_branches, list_tags, reference_store

__all__ = ["BRANCHES", "COLUMNS", "INDICES", "TAGS", "UNINDEXED_ROWS", "VERSIONS", "OwnMeasure"]


@dataclass(frozen=True)
class OwnMeasure:
    """A measure's name for people, and what counts it: in an opened version, or beneath the table's root."""

    name: str
    count: Callable[[LanceDataset], int]


def _unindexed_rows(data: LanceDataset) -> int:
    """Return how many rows the indices do not cover, added up over the indices."""
    return sum(data.snapshot.num_rows - each.num_indexed_rows for each in index_coverage(data.snapshot))


VERSIONS = OwnMeasure("versions", lambda data: len(data.snapshot.committer.versions()))
TAGS = OwnMeasure("tags", lambda data: len(list_tags(reference_store(data.snapshot))))
BRANCHES = OwnMeasure("branches", lambda data: len(list_branches(reference_store(data.snapshot))))
COLUMNS = OwnMeasure("columns", lambda data: len(data.snapshot.schema.names))
INDICES = OwnMeasure("indices", lambda data: len(index_coverage(data.snapshot)))
UNINDEXED_ROWS = OwnMeasure("rows that an index lacks", _unindexed_rows)

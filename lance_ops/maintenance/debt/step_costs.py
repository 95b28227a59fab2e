"""Measure what a compaction cost and gained, from the manifests of its version and of the one before.

A manifest does not tell the bytes of a column, which are what an index step reads. So only compactions are measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.maintenance.debt.rates import Rates
from lance_ops.snapshot import Snapshot

__all__ = ["StepCost", "measure_compaction"]


@dataclass(frozen=True)
class StepCost:
    """What a compaction moved: the mean of the bytes that it replaced and added; and what each read costs less."""

    moved_bytes: int
    saved_read_bytes: int


def measure_compaction(planned: Snapshot, committed: Snapshot, rates: Rates) -> StepCost | None:
    """Compare a compaction's version with the one before it, which may have rows of other writers.

    None if the compaction committed nothing, or if the version before cannot be read: it may have been removed since.
    """
    if committed.version == planned.version:
        return None
    try:
        before = planned if committed.version == planned.version + 1 else committed.at(committed.version - 1)
    except LanceOpsError:
        return None
    old, new = dict(_files(before)), dict(_files(committed))
    replaced = sum(size_bytes for name, size_bytes in old.items() if name not in new)
    added = sum(size_bytes for name, size_bytes in new.items() if name not in old)
    saved = _read_cost(before, rates) - _read_cost(committed, rates)
    return StepCost(round((replaced + added) / 2), round(saved))


def _files(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    """Yield the names and sizes of data files and of indices' segments; all are unique."""
    for fragment in snapshot.fragments:
        for file in fragment.files:
            yield file.path, file.file_size_bytes
    for segment in snapshot.manifest.indices:
        yield str(segment.uuid), sum(file.size_bytes for file in segment.files)


def _read_cost(snapshot: Snapshot, rates: Rates) -> float:
    return rates.read_cost(snapshot.size_bytes, len(snapshot.fragments))

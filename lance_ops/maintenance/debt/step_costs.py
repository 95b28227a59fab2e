"""Measure what a step cost and gained, from the manifests of its version and of the one before."""

from __future__ import annotations

from collections.abc import Iterator

from lance_ops.core.errors import VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.maintenance.debt.rates import Rates
from lance_ops.snapshot import Snapshot

__all__ = ["StepCost", "measure_step"]


@dataclass(frozen=True)
class StepCost:
    """The bytes that a commit moved, counted once as prices are, and what each read of the table costs less."""

    moved_bytes: int
    saved_read_bytes: int


def measure_step(planned: Snapshot, committed: Snapshot, rates: Rates) -> StepCost | None:
    """Compare a step's version with the one before it, which may have other writers' rows that `planned` has not.

    A step reads the files that it replaces and writes those that it adds: it moved the mean of both. None if the step
    committed nothing, or if clean-up has removed the version before.
    """
    if committed.version == planned.version:
        return None
    try:
        before = planned if committed.version == planned.version + 1 else committed.at(committed.version - 1)
    except VersionNotFound:
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

"""Summarise each retained version: its operation, rows, sizes, tags and ingested batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice

from lance_ops.core.errors import VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.maintenance.batch_ledger import batches_of
from lance_ops.maintenance.health.coverage import index_coverage, indexed_ratio
from lance_ops.maintenance.health.rows_changed import operation_of
from lance_ops.refs import branch_of, list_tags, reference_store
from lance_ops.snapshot import Snapshot, history
from lance_ops.transactions import CommittedVersion, read_version

__all__ = ["VersionSummary", "summarised_versions", "timeline"]


@dataclass(frozen=True)
class VersionSummary:
    """One retained version. `operation` is the transaction's name, `?` if its transaction was removed."""

    version: int
    timestamp: datetime | None
    operation: str
    num_rows: int
    num_fragments: int
    num_deleted_rows: int
    size_bytes: int
    indexed_ratio: float | None
    tags: tuple[str, ...]
    batches: tuple[str, ...]
    transaction_properties: Mapping[str, str]


def timeline(snapshot: Snapshot, limit: int | None = None) -> list[VersionSummary]:
    """Return the retained versions up to this one, oldest first; with `limit` only the newest `limit` versions."""
    return [summary for _, summary in islice(summarised_versions(snapshot), limit)][::-1]


def summarised_versions(
    snapshot: Snapshot, versions: Iterable[int] | None = None
) -> Iterator[tuple[Snapshot, VersionSummary]]:
    """Yield retained versions, each opened and summarised. A version is read when the caller asks for it.

    They are all versions up to this one, newest first, or those that the caller has chosen from a listing, in the order
    given. Versions that clean-up removes meanwhile are left out.
    """
    tags: dict[int, list[str]] = {}
    for name, tag in list_tags(reference_store(snapshot)).items():
        if tag.branch == branch_of(snapshot):
            tags.setdefault(tag.version, []).append(name)
    for past in history(snapshot) if versions is None else _read(snapshot, versions):
        opened = snapshot.with_manifest(past.manifest)
        yield opened, _summary(opened, past, tuple(tags.get(past.version, ())))


def _read(snapshot: Snapshot, versions: Iterable[int]) -> Iterator[CommittedVersion]:
    for version in versions:
        try:
            committed = read_version(snapshot.store, snapshot.committer, version, as_listed=True)
        except VersionNotFound:
            continue
        yield committed


def _summary(snapshot: Snapshot, past: CommittedVersion, tags: tuple[str, ...]) -> VersionSummary:
    """Return the summary of a version; `snapshot` is that version."""
    properties = dict(past.transaction_properties)
    return VersionSummary(
        version=past.version,
        timestamp=past.manifest.timestamp,
        operation=operation_of(past),
        num_rows=snapshot.num_rows,
        num_fragments=len(snapshot.fragments),
        num_deleted_rows=snapshot.num_deleted_rows,
        size_bytes=snapshot.size_bytes,
        indexed_ratio=indexed_ratio(index_coverage(snapshot)),
        tags=tags,
        batches=tuple(batches_of(properties)),
        transaction_properties=properties,
    )

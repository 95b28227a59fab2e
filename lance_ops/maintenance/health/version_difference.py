"""Compare two versions of a dataset by their manifests: columns, rows, fragments and indices; no data file is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.maintenance.health.coverage import IndexCoverage, index_coverage
from lance_ops.maintenance.health.version_timeline import VersionSummary, timeline
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment

__all__ = ["Change", "ColumnChange", "IndexChange", "VersionDifference", "compare_versions"]


class Change(Enum):
    """What happened to a column or an index from the older version to the newer one."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    CHANGED = "changed"


@dataclass(frozen=True)
class ColumnChange:
    """A column, nested ones too, by its path. `before` and `after` describe it; None where there is no such column."""

    path: str
    change: Change
    before: str | None
    after: str | None


@dataclass(frozen=True)
class IndexChange:
    """An index, and the share of the rows that it covers in each version; None where there is no such index."""

    name: str
    change: Change
    before: float | None
    after: float | None


@dataclass(frozen=True)
class VersionDifference:
    """What the version `after` has that `before` has not, and the other way round.

    `fragments_changed` are fragments of both whose files or deleted rows differ. `versions` are the retained ones from
    the older, which is not among them, to the newer.
    """

    before: int
    after: int
    rows_before: int
    rows_after: int
    size_before: int
    size_after: int
    fragments_added: tuple[int, ...]
    fragments_removed: tuple[int, ...]
    fragments_changed: tuple[int, ...]
    columns: tuple[ColumnChange, ...]
    indices: tuple[IndexChange, ...]
    versions: tuple[VersionSummary, ...]


def compare_versions(
    before: Snapshot, after: Snapshot, versions: Sequence[VersionSummary] | None = None
) -> VersionDifference:
    """Compare two versions of one dataset, in either order of their numbers.

    `versions` are the retained ones from the older to the newer, if the caller has them; otherwise they are read.
    """
    older, newer = {f.id: f for f in before.fragments}, {f.id: f for f in after.fragments}
    first, last = sorted((before.version, after.version))
    newest = after if after.version == last else before
    return VersionDifference(
        before=before.version,
        after=after.version,
        rows_before=before.num_rows,
        rows_after=after.num_rows,
        size_before=before.size_bytes,
        size_after=after.size_bytes,
        fragments_added=tuple(sorted(newer.keys() - older.keys())),
        fragments_removed=tuple(sorted(older.keys() - newer.keys())),
        fragments_changed=tuple(
            sorted(i for i in older.keys() & newer.keys() if _stored(older[i]) != _stored(newer[i]))
        ),
        columns=tuple(_columns(before.schema, after.schema)),
        indices=tuple(_indices(before, after)),
        versions=tuple(
            past for past in (timeline(newest, last - first) if versions is None else versions) if past.version > first
        ),
    )


def _stored(fragment: Fragment) -> object:
    return fragment.files, fragment.deletion_file


def _columns(before: Schema, after: Schema) -> Iterator[ColumnChange]:
    """Yield the changed columns. A field is the same one as long as it keeps its id, whatever its name."""
    older, newer = {field.id: field for field in before.walk()}, {field.id: field for field in after.walk()}
    for field_id, field in older.items():
        if field_id not in newer and field.parent_id not in older.keys() - newer.keys():
            yield ColumnChange(before.path_of(field_id), Change.REMOVED, _described(field), None)
    for field_id, field in newer.items():
        path = after.path_of(field_id)
        if field.parent_id in newer.keys() - older.keys():
            continue  # its column is new as a whole
        if field_id not in older:
            yield ColumnChange(path, Change.ADDED, None, _described(field))
        elif older[field_id].name != field.name:
            yield ColumnChange(path, Change.RENAMED, before.path_of(field_id), path)
        elif _described(older[field_id]) != _described(field):
            yield ColumnChange(path, Change.CHANGED, _described(older[field_id]), _described(field))


def _described(field: Field) -> str:
    return f"{field.logical_type if field.children else field.arrow_type}{'' if field.nullable else ' not null'}"


def _indices(before: Snapshot, after: Snapshot) -> Iterator[IndexChange]:
    older, newer = _by_name(before), _by_name(after)
    for name in sorted(older.keys() | newer.keys()):
        was, now = older.get(name), newer.get(name)
        if was is None:
            yield IndexChange(name, Change.ADDED, None, newer[name].indexed_ratio)
        elif now is None:
            yield IndexChange(name, Change.REMOVED, was.indexed_ratio, None)
        elif was != now:
            yield IndexChange(name, Change.CHANGED, was.indexed_ratio, now.indexed_ratio)


def _by_name(snapshot: Snapshot) -> dict[str, IndexCoverage]:
    return {index.name: index for index in index_coverage(snapshot)}

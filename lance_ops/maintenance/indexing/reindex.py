"""Build scalar indices, extend them to rows that they do not cover, and drop them.

`create_scalar_index` trains on all live rows and replaces an index of that name; `optimize_indices` merges each
index's segments with the rows that none covers. Each writes one new segment and commits one `CreateIndex`; after a
conflict with another writer it is planned again. With a runner, tasks do the work if it is large (`TaskSizes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from pyroaring import BitMap

from lance_ops.core.errors import IndexNotFound, InvalidInput, UnsupportedFeature
from lance_ops.core.file_names import check_index_name
from lance_ops.core.schema import Field
from lance_ops.indices import IndexConfig, RowKey, index_type_for, index_type_of
from lance_ops.maintenance.indexing.segment_builder import SegmentBuilder
from lance_ops.maintenance.indexing.segment_commit import commit_segment
from lance_ops.maintenance.indexing.task_shares import TaskSizes
from lance_ops.reading import awaits_remap, has_index_files, open_index, row_key_of
from lance_ops.refs import pinned_if_at_risk
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata
from lance_ops.transactions import CreateIndex
from lance_ops.writing import CONFLICT_RETRIES, commit_operation, retry_conflicts

__all__ = ["create_scalar_index", "drop_index", "optimize_indices", "rebuild_index"]


def create_scalar_index(
    snapshot: Snapshot,
    column: str,
    index_type: str | IndexConfig,
    name: str | None = None,
    *,
    replace: bool = True,
    runner: Runner | None = None,
    sizes: TaskSizes | None = None,
) -> Snapshot:
    """Train an index on a column over all fragments and commit it; the default name is `<column>_idx`.

    Tasks of the runner do the work if it is large; without one, this process does it.

    Raises `InvalidInput` for an unknown type or column, a column inside a list, or a name in use with `replace` false;
    `UnsupportedFeature` for a column that such an index cannot hold.
    """
    kind = index_type_for(index_type)
    kind.check(snapshot.schema.single_valued_lineage(column, "an index on")[-1])
    index_name = check_index_name(f"{column}_idx" if name is None else name)

    def attempt(current: Snapshot) -> Snapshot:
        same_name = tuple(index for index in current.manifest.indices if index.name == index_name)
        if same_name and not replace:
            raise InvalidInput(f"{current.uri} has an index {index_name!r} already: pass replace=True or another name")
        field = current.schema.field(column)
        with pinned_if_at_risk(current, snapshot):
            new = SegmentBuilder(current, runner, sizes or TaskSizes()).train(kind, field, index_name)
            return commit_segment(current, new, same_name)

    return retry_conflicts(snapshot, attempt, CONFLICT_RETRIES)


def optimize_indices(
    snapshot: Snapshot,
    index_names: Sequence[str] | None = None,
    *,
    runner: Runner | None = None,
    sizes: TaskSizes | None = None,
) -> Snapshot:
    """Cover every fragment by every scalar index (or the named ones), each as one segment.

    Indices of other types stay as they are; if one is named, `UnsupportedFeature` is raised. Raises `IndexNotFound`,
    which names the existing indices. `runner` is as for `create_scalar_index`.
    """
    names = _names(snapshot) if index_names is None else list(index_names)
    for name in names:
        if name not in _names(snapshot):
            raise _not_found(snapshot, name)

        def attempt(current: Snapshot, name: str = name, first: Snapshot = snapshot) -> Snapshot:
            builder = SegmentBuilder(current, runner, sizes or TaskSizes())
            return _optimize(builder, name, first, skip_unsupported=index_names is None)

        snapshot = retry_conflicts(snapshot, attempt, CONFLICT_RETRIES)
    return snapshot


def rebuild_index(snapshot: Snapshot, name: str, *, runner: Runner | None = None) -> Snapshot:
    """Train an index anew from all live rows, with its own type and parameters, in the place of all its segments.

    Raises `IndexNotFound`, and `UnsupportedFeature` for a type that this library does not build.
    """

    def attempt(current: Snapshot) -> Snapshot:
        segments = tuple(index for index in current.manifest.indices if index.name == name)
        if not segments:
            raise _not_found(current, name)
        kind, field = index_type_of(segments[0]), _indexed_field(current, segments[0])
        with pinned_if_at_risk(current, snapshot):
            new = SegmentBuilder(current, runner, TaskSizes()).train(kind, field, name)
            return commit_segment(current, new, segments)

    return retry_conflicts(snapshot, attempt, CONFLICT_RETRIES)


def drop_index(snapshot: Snapshot, name: str, *, transaction_properties: Mapping[str, str] | None = None) -> Snapshot:
    """Remove an index; clean-up removes its files with the versions that name them.

    The commit's transaction states `transaction_properties`.
    """

    def attempt(current: Snapshot) -> Snapshot:
        segments = tuple(index for index in current.manifest.indices if index.name == name)
        if not segments:
            raise _not_found(current, name)
        return commit_operation(current, CreateIndex((), segments), properties=transaction_properties)

    return retry_conflicts(snapshot, attempt, CONFLICT_RETRIES)


def _optimize(builder: SegmentBuilder, name: str, first: Snapshot, *, skip_unsupported: bool) -> Snapshot:
    snapshot = builder.snapshot
    segments = tuple(index for index in snapshot.manifest.indices if index.name == name)
    if not segments:  # another writer removed it after the names were read
        if skip_unsupported:
            return snapshot
        raise _not_found(snapshot, name)
    covered = BitMap()
    for segment in segments:
        covered |= segment.covers(snapshot.fragments_by_id)
    missing = [fragment_id for fragment_id in snapshot.fragments_by_id if fragment_id not in covered]
    deferred = any(awaits_remap(snapshot, segment) for segment in segments)
    try:
        kind = index_type_of(segments[0])
        field = _indexed_field(snapshot, segments[0])
        lost = not all(has_index_files(snapshot, segment) for segment in segments)
        if not (missing or deferred or lost) and len(segments) == 1:
            return snapshot
        opened = [] if lost else [open_index(snapshot, segment) for segment in segments]
    except UnsupportedFeature:
        if skip_unsupported:
            return snapshot
        raise
    with pinned_if_at_risk(snapshot, first):
        if deferred or lost or not _can_merge(snapshot, segments):
            return commit_segment(snapshot, builder.train(kind, field, name), segments)
        return commit_segment(snapshot, builder.merge(kind, field, name, opened, tuple(missing)), segments)


def _can_merge(snapshot: Snapshot, segments: tuple[IndexMetadata, ...]) -> bool:
    """Return whether stale entries can be told apart when the segments are merged.

    They cannot if a segment does not record its coverage, or if segments name rows by id: the id of an updated row is
    in two segments, under the old value and the new one. An address is in one segment only.
    """
    return all(
        segment.fragment_bitmap is not None and row_key_of(snapshot, segment) is RowKey.ADDRESS for segment in segments
    )


def _indexed_field(snapshot: Snapshot, index: IndexMetadata) -> Field:
    field = snapshot.schema.by_id(index.fields[0]) if len(index.fields) == 1 else None
    if field is None:
        raise UnsupportedFeature(f"an index on fields {list(index.fields)}", f"index {index.name!r}")
    return field


def _names(snapshot: Snapshot) -> list[str]:
    named = sorted((index for index in snapshot.manifest.indices if not index.is_system), key=lambda index: index.name)
    return [name for name, _ in groupby(named, key=lambda index: index.name)]


def _not_found(snapshot: Snapshot, name: str) -> IndexNotFound:
    return IndexNotFound(f"{snapshot.uri} has no index {name!r}: it has {', '.join(_names(snapshot)) or 'none'}")

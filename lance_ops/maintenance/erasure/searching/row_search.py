"""Search stored rows in tasks: of fragments, with the deleted ones, whose values are still in the files, and of files.

A file that no version names is searched as the only fragment of a version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyroaring import BitMap

from lance_ops.core.errors import CorruptFile, ObjectNotFound, SchemaMismatch, UnsupportedFeature
from lance_ops.core.file_names import DATA_DIR
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.maintenance.erasure.searching.sought_values import marks_rows, value_bytes
from lance_ops.maintenance.erasure.subject import HasKey
from lance_ops.reading import ScanRequest, in_task, scan_rows
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.table import Fragment, FragmentList
from lance_ops.table.rows import join_bitmaps
from lance_ops.writing import describe_fragment

__all__ = ["FilterColumns", "FoundStoredRows", "columns_read", "search_fragments", "search_unnamed"]

FilterColumns: TypeAlias = tuple[Field, ...]
"""The columns that the filter reads in a version. A column may have the name of one that was dropped."""

_FRAGMENTS_PER_TASK = 16
_MOST_VALUES = 10_000


@dataclass(frozen=True)
class SearchTask:
    """Fragments of one version to search; `value_column` is a column of texts or bytes whose values are wanted."""

    snapshot: SnapshotReference
    predicate: Predicate
    fragment_ids: tuple[int, ...]
    value_column: str | None


@dataclass(frozen=True)
class UnnamedTask:
    """A data file beneath the root, to search as the only fragment of the version."""

    snapshot: SnapshotReference
    predicate: Predicate
    path: str


@dataclass(frozen=True)
class FoundStoredRows:
    """Physical offsets of stored rows that match, by fragment, as bitmaps; and their distinct values as bytes."""

    offsets: Mapping[int, bytes]
    values: frozenset[bytes]


def search_fragments(
    snapshot: Snapshot, predicate: Predicate, fragments: Sequence[Fragment], runner: Runner
) -> tuple[dict[int, BitMap], frozenset[bytes]]:
    """Return the stored rows that match, and the values that mark them if the filter reads one column of texts."""
    reference, column = SnapshotReference.of(snapshot), _value_column(snapshot, predicate)
    cuts = list(_cuts(fragments))
    tasks = [SearchTask(reference, predicate, tuple(fragment.id for fragment in cut), column) for cut in cuts]
    job = Job.on("search", snapshot.uri, snapshot.version).in_bytes(
        sum(file.file_size_bytes for fragment in cut for file in fragment.files) for cut in cuts
    )
    found = runner.map(find_stored_rows, tasks, job)
    offsets = join_bitmaps(outcome.offsets for outcome in found)
    return offsets, frozenset().union(*(outcome.values for outcome in found))


def search_unnamed(
    snapshot: Snapshot, predicate: Predicate, paths: Sequence[str], runner: Runner
) -> dict[str, bool | None]:
    """Return for data files that no version names whether they store rows that match.

    None stands for a file that cannot be searched: it is gone, not whole, of version 0.1, on another branch, or lacks
    columns of the table.
    """
    if not paths:
        return {}
    tasks = [UnnamedTask(SnapshotReference.of(snapshot), predicate, path) for path in paths]
    job = Job.on("search files without a version of", snapshot.uri, snapshot.version)
    return dict(zip(paths, runner.map(stores_rows, tasks, job), strict=True))


def stores_rows(task: UnnamedTask) -> bool | None:
    """Search every row of the task's file."""
    snapshot = task.snapshot.open()
    directory, _, name = task.path.partition("/")
    if directory != DATA_DIR:
        return None
    try:
        manifest = replace(snapshot.manifest, fragments=FragmentList([describe_fragment(snapshot, name, 0)]))
        request = ScanRequest(
            snapshot.schema.project([]), task.predicate, fragment_ids=(0,), use_scalar_index=False, use_stats=False
        )
        alone = snapshot.with_manifest(manifest)
        return any(len(rows.bitmap()) for rows in scan_rows(alone, in_task(alone, request)))
    except (CorruptFile, ObjectNotFound, SchemaMismatch, UnsupportedFeature):
        return None


def columns_read(version: Snapshot, predicate: Predicate) -> FilterColumns:
    """Return the table's columns that the filter reads."""
    return version.schema.project(predicate.columns()).fields


def find_stored_rows(task: SearchTask) -> FoundStoredRows:
    """Search every row of the task's fragments by its value; no index and no statistics decide what is read."""
    snapshot = task.snapshot.open()
    schema = snapshot.schema.project([task.value_column] if task.value_column else [])
    request = ScanRequest(
        schema,
        task.predicate,
        fragment_ids=task.fragment_ids,
        include_deleted_rows=True,
        use_scalar_index=False,
        use_stats=False,
    )
    found: dict[int, BitMap] = {}
    values: set[bytes] = set()
    for rows in scan_rows(snapshot, in_task(snapshot, request)):
        found.setdefault(rows.fragment.id, BitMap()).update(rows.bitmap())
        if task.value_column and len(values) < _MOST_VALUES:
            values.update(map(value_bytes, _leaf(rows.table.column(0)).unique().drop_null().to_pylist()))
    return FoundStoredRows({key: offsets.serialize() for key, offsets in found.items()}, frozenset(values))


def _value_column(snapshot: Snapshot, predicate: Predicate) -> str | None:
    """Return the only column that the filter reads, if it holds texts or bytes; keys are such values themselves.

    A value of one of several columns may also stand in the rows of others.
    """
    columns = predicate.columns()
    if len(columns) != 1 or isinstance(predicate, HasKey):
        return None
    return columns[0] if marks_rows(snapshot.schema.field(columns[0]).arrow_type) else None


def _leaf(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of the only field that a struct was projected to, however deep it is."""
    while pt.is_struct(values.type):
        values = pc.struct_field(values, [0])
    return values


def _cuts(fragments: Sequence[Fragment]) -> Iterator[Sequence[Fragment]]:
    for start in range(0, len(fragments), _FRAGMENTS_PER_TASK):
        yield fragments[start : start + _FRAGMENTS_PER_TASK]

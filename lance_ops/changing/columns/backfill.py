"""Compute columns for the rows of every fragment, and write one new data file for each fragment.

plan_backfill(snapshot, columns, source) -> tasks     one for each fragment, or for several of very many
write_columns(task) -> files                          anywhere
run_backfill(snapshot, tasks, runner, job) -> files   writes them by the runner; large fragments in pieces on a cluster
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

import pyarrow as pa

from lance_ops.changing.columns.column_file import (
    ColumnFile,
    can_join_pieces,
    join_column_pieces,
    pending_columns,
    write_column_file,
    write_column_piece,
)
from lance_ops.changing.columns.column_pieces import Piece, cut_into_pieces, new_piece_folder
from lance_ops.changing.columns.column_sources import ColumnSource
from lance_ops.changing.columns.kept_files import KeptFiles
from lance_ops.core.errors import (
    CorruptFile,
    InvalidInput,
    ObjectNotFound,
    RetryableConflict,
    SchemaMismatch,
    UnsupportedFeature,
)
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import Dictionaries
from lance_ops.reading import (
    ROW_ADDRESS,
    ROW_COLUMNS,
    ROW_ID,
    VERSION_COLUMNS,
    RowOffsets,
    ScannedRows,
    ScanRequest,
    in_task,
    scan_rows,
)
from lance_ops.runners import Job, Runner, RunnerWithSlots
from lance_ops.snapshot import Snapshot, SnapshotReference, check_rows_are_stored
from lance_ops.table import Fragment
from lance_ops.transactions import remove_files_of_job
from lance_ops.writing import share_fragments

__all__ = [
    "BackfillTask",
    "backfill_request",
    "check_batch_size",
    "plan_backfill",
    "run_backfill",
    "write_columns",
    "write_streamed_columns",
]


@dataclass(frozen=True)
class BackfillTask:
    """Fragments for which to write `columns`, computed in batches of at most `batch_size` rows.

    A file that is among those of an earlier attempt (`kept`) is not written again. The columns of a fragment that has
    `pieces`, which are paths, are computed, and its file is made of these.
    """

    snapshot: SnapshotReference
    fragment_ids: tuple[int, ...]
    columns: Schema
    source: ColumnSource
    batch_size: int | None = None
    kept: KeptFiles | None = None
    pieces: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class _PieceWriter:
    """Computes columns for pieces of fragments. It carries the source, so the pieces stay small."""

    snapshot: SnapshotReference
    columns: Schema
    source: ColumnSource
    batch_size: int | None
    durable: bool

    def __call__(self, piece: Piece) -> None:
        snapshot = self.snapshot.open()
        fragment, rows = snapshot.fragments_by_id[piece.fragment_id], range(piece.first, piece.stop)
        computed = _computed(snapshot, fragment, self.columns, self.source.opened(), self.batch_size, rows)
        write_column_piece(snapshot, self.columns, computed, rows, piece.path, durable=self.durable)


def plan_backfill(
    snapshot: Snapshot,
    columns: Schema,
    source: ColumnSource,
    batch_size: int | None = None,
    kept: KeptFiles | None = None,
    fragment_ids: Collection[int] | None = None,
) -> tuple[BackfillTask, ...]:
    """Return the tasks that write the columns of every fragment, or of those in `fragment_ids`.

    Raises `UnsupportedFeature` if the file version cannot have such columns, and `ReadTooLarge` as
    `check_rows_are_stored` does.
    """
    _check_can_add(snapshot, columns)
    check_batch_size(batch_size)
    fragments = snapshot.fragments
    if fragment_ids is not None:
        fragments = [snapshot.fragments_by_id[fragment_id] for fragment_id in sorted(fragment_ids)]
    check_rows_are_stored(snapshot, sum(each.physical_rows for each in fragments), fragments)
    reference = SnapshotReference.of(snapshot)
    kept = kept and kept.without_old(snapshot.store, fragments)
    return tuple(
        BackfillTask(reference, ids, columns, source.for_fragments(ids), batch_size, kept and kept.for_fragments(ids))
        for ids in share_fragments(fragments)
    )


def run_backfill(snapshot: Snapshot, tasks: Sequence[BackfillTask], runner: Runner, job: Job) -> list[ColumnFile]:
    """Write the files of all tasks, each weighed by the bytes of its fragments.

    The tasks have the same columns and source. Other tasks first compute pieces of large fragments, if the runner has
    slots that would wait for them. A file of a job that fails is deleted, unless the tasks keep files.
    """
    pieces = _pieces_of(snapshot, tasks, runner)
    if not pieces:
        return _write_files(snapshot, tasks, runner, job)
    first = tasks[0]
    writer = _PieceWriter(first.snapshot, first.columns, first.source, first.batch_size, durable=first.kept is not None)
    finished = first.kept.finished_pieces(snapshot.store) if first.kept else frozenset()
    missing = [piece for of_fragment in pieces.values() for piece in of_fragment if piece.path not in finished]
    try:
        runner.map(writer, missing, job.in_bytes(_size_bytes(snapshot, piece) for piece in missing))
        paths = {key: tuple(piece.path for piece in of_fragment) for key, of_fragment in pieces.items()}
        tasks = [replace(task, pieces={key: paths[key] for key in task.fragment_ids if key in paths}) for task in tasks]
        return _write_files(snapshot, tasks, runner, replace(job, verb=f"join pieces to {job.verb}"))
    finally:
        if not first.kept:
            snapshot.store.child(next(iter(pieces.values()))[0].path.rpartition("/")[0]).clear_or_leave()


def _pieces_of(snapshot: Snapshot, tasks: Sequence[BackfillTask], runner: Runner) -> dict[int, list[Piece]]:
    """Return the pieces of each fragment that several tasks compute; none if the runner has no slots."""
    first = tasks[0] if tasks else None
    if first is None or not (
        isinstance(runner, RunnerWithSlots)
        and first.source.serves_parts
        and can_join_pieces(snapshot.file_version, first.columns)
    ):
        return {}
    folder = first.kept.folder if first.kept else new_piece_folder()
    fragments = [snapshot.fragments_by_id[fragment_id] for task in tasks for fragment_id in task.fragment_ids]
    found = cut_into_pieces(fragments, folder, runner.num_slots())
    kept = {fragment_id: task.kept for task in tasks if task.kept for fragment_id in task.fragment_ids}
    finished = [key for key in found if key in kept and kept[key].find(snapshot.store, snapshot.fragments_by_id[key])]
    return {key: of_fragment for key, of_fragment in found.items() if key not in finished}


def _size_bytes(snapshot: Snapshot, piece: Piece) -> int:
    """Return about how many bytes of its fragment's files hold the rows of a piece."""
    fragment = snapshot.fragments_by_id[piece.fragment_id]
    size_bytes = sum(file.file_size_bytes for file in fragment.files)
    return size_bytes * (piece.stop - piece.first) // fragment.physical_rows


def _write_files(snapshot: Snapshot, tasks: Sequence[BackfillTask], runner: Runner, job: Job) -> list[ColumnFile]:
    fragments = snapshot.fragments_by_id
    job = job.in_bytes(
        sum(file.file_size_bytes for fragment_id in task.fragment_ids for file in fragments[fragment_id].files)
        for task in tasks
    )
    if any(task.kept for task in tasks):
        written = runner.map(write_columns, tasks, job)
    else:
        job = job.with_removal(partial(remove_files_of_job, snapshot.store))
        written = runner.map(write_columns, tasks, job, lambda files: pending_columns(snapshot, files).abandon())
    return [file for files in written for file in files]


def check_batch_size(batch_size: int | None) -> None:
    """Raise `InvalidInput` for a number of rows that is not positive."""
    if batch_size is not None and batch_size < 1:
        raise InvalidInput(f"batch_size must be positive, not {batch_size}")


def backfill_request(
    snapshot: Snapshot, reads: Sequence[str], fragment_id: int, rows: range | None = None
) -> ScanRequest:
    """Return the scan of a fragment that reads these columns, of which some may be row columns such as `_rowid`.

    With `rows`, it has only the rows at these physical offsets.
    """
    return ScanRequest(
        snapshot.schema.project(path for path in reads if path not in ROW_COLUMNS),
        with_row_id=ROW_ID in reads,
        # without any column a table would have no rows
        with_row_address=ROW_ADDRESS in reads or not reads,
        version_columns=tuple(name for name in VERSION_COLUMNS if name in reads),
        fragment_ids=(fragment_id,),
        row_ranges=() if rows is None else ((fragment_id, rows.start, rows.stop),),
    )


def write_columns(task: BackfillTask) -> list[ColumnFile]:
    """Write the file of each fragment; on an error all are deleted, unless the task keeps files.

    Raises `RetryableConflict` if a kept piece is gone or damaged; another attempt computes the fragment's pieces again.
    """
    snapshot = task.snapshot.open()
    written: list[ColumnFile] = []
    try:
        for fragment in (snapshot.fragments_by_id[fragment_id] for fragment_id in task.fragment_ids):
            written += [_write_one(snapshot, fragment, task)]
    except BaseException:
        if not task.kept:
            pending_columns(snapshot, written).abandon()
        raise
    return written


def _write_one(snapshot: Snapshot, fragment: Fragment, task: BackfillTask) -> ColumnFile:
    finished = task.kept.find(snapshot.store, fragment) if task.kept else None
    if finished is not None:
        return finished
    if fragment.id in task.pieces:
        written = _joined(snapshot, fragment, task)
    else:
        source = task.source.for_fragments((fragment.id,)).opened()
        computed = _computed(snapshot, fragment, task.columns, source, task.batch_size)
        written = write_column_file(snapshot, fragment, task.columns, computed)
    if task.kept:
        task.kept.keep(snapshot.store, fragment, written)
    return written


def _joined(snapshot: Snapshot, fragment: Fragment, task: BackfillTask) -> ColumnFile:
    try:
        return join_column_pieces(snapshot, fragment, task.columns, task.pieces[fragment.id])
    except (CorruptFile, ObjectNotFound) as error:
        if not task.kept:
            raise
        for path in task.pieces[fragment.id]:
            snapshot.store.delete(path)
        raise RetryableConflict(f"{error}; make the same call again to compute the fragment's pieces") from error


def _computed(
    snapshot: Snapshot,
    fragment: Fragment,
    columns: Schema,
    source: ColumnSource,
    batch_size: int | None,
    rows: range | None = None,
) -> Iterator[tuple[RowOffsets, pa.Table]]:
    """Yield the columns of a fragment's live rows, or of those at the offsets `rows`, with the offsets."""
    request = in_task(snapshot, backfill_request(snapshot, source.reads, fragment.id, rows))
    files = [file.path for file in fragment.files]
    for found in _in_batches(scan_rows(snapshot, request), batch_size):
        rows_name = f"{files} {fragment.deletion_path} {found.offsets[0]}+{len(found)}"
        yield found.offsets, source.compute(found.table, columns, rows_name)


def write_streamed_columns(
    snapshot: Snapshot,
    columns: Schema,
    batches: Iterable[pa.RecordBatch],
    fragments: Sequence[Fragment] | None = None,
) -> list[ColumnFile]:
    """Write the files of the fragments (all by default) from a stream with one row for each live row, in order.

    Raises `SchemaMismatch` if the stream has more or fewer rows. On an error all files are deleted.
    """
    _check_can_add(snapshot, columns)
    written: list[ColumnFile] = []
    dictionaries = Dictionaries(columns)
    rows = _RowStream(batches)
    try:
        for fragment in snapshot.fragments if fragments is None else fragments:
            live = snapshot.live_offsets(fragment)
            written.append(write_column_file(snapshot, fragment, columns, rows.take(live), dictionaries))
        if rows.has_more():
            raise SchemaMismatch("the stream has more rows than the table")
    except BaseException:
        pending_columns(snapshot, written).abandon()
        raise
    return written


def _in_batches(found: Iterable[ScannedRows], batch_size: int | None) -> Iterator[ScannedRows]:
    for rows in found:
        if batch_size is None:
            yield rows
            continue
        yield from (rows.slice(at, batch_size) for at in range(0, len(rows), batch_size))


def check_no_blobs(columns: Schema) -> None:
    """Raise `UnsupportedFeature` for a column of blobs of file version 2.2, which cannot be in a file of its own."""
    blob = next((field for field in columns.fields if field.holds_blobs_v2), None)
    if blob is not None:
        raise UnsupportedFeature(
            "blobs of file version 2.2 in a separate column file (replace whole rows by merge_insert, write a new "
            "table with the column, or add one of plain binary values)",
            f"column {blob.name!r}",
        )


def _check_can_add(snapshot: Snapshot, columns: Schema) -> None:
    """Raise `UnsupportedFeature` for columns that cannot be in a file of their own."""
    check_no_blobs(columns)
    if snapshot.file_version is not FileVersion.V2_0:
        return
    for column in columns.fields:  # a reader of 2.0 looks for all fields of a struct in the file that lists the struct
        known = snapshot.schema.by_id(column.id)
        if known is not None and {node.id for node in known.walk()} != {node.id for node in column.walk()}:
            raise UnsupportedFeature(
                "new values of some fields of a struct of file version 2.0", f"column {column.name!r}"
            )


class _RowStream:
    """A stream of batches from which the caller takes any number of rows."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = (batch for batch in batches if batch.num_rows)
        self._rest: pa.RecordBatch | None = None

    def take(self, offsets: RowOffsets) -> Iterator[tuple[RowOffsets, pa.Table]]:
        """Yield one row for each offset, in parts; raise `SchemaMismatch` if the stream ends too early."""
        at = 0
        while at < len(offsets):
            if not self.has_more() or self._rest is None:
                raise SchemaMismatch(f"the stream ended {len(offsets) - at} rows before the end of a fragment")
            part = self._rest.slice(0, len(offsets) - at)
            rest = self._rest.slice(part.num_rows)
            self._rest = rest if rest.num_rows else None
            yield offsets[at : at + part.num_rows], pa.Table.from_batches([part])
            at += part.num_rows

    def has_more(self) -> bool:
        """Return whether the stream has another row."""
        if self._rest is None:
            self._rest = next(self._batches, None)
        return self._rest is not None

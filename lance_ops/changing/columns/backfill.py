"""Compute columns for the rows of every fragment, and write one new data file for each fragment.

plan_backfill(snapshot, columns, source) -> tasks     one for each fragment
write_columns(task) -> ColumnFile                     anywhere
run_backfill(snapshot, tasks, runner, job) -> files   writes them by the runner; large fragments in pieces on a cluster
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
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
    """A fragment for which to write `columns`, computed in batches of at most `batch_size` rows.

    A file that is among those of an earlier attempt (`kept`) is not written again. With `pieces`, which are paths, the
    columns are computed, and the file is made of these.
    """

    snapshot: SnapshotReference
    fragment_id: int
    columns: Schema
    source: ColumnSource
    batch_size: int | None = None
    kept: KeptFiles | None = None
    pieces: tuple[str, ...] = ()


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
) -> tuple[BackfillTask, ...]:
    """Return one task for each fragment; raise `UnsupportedFeature` if the file version cannot have such columns.

    Raises `ReadTooLarge` as `check_rows_are_stored` does.
    """
    _check_can_add(snapshot, columns)
    check_batch_size(batch_size)
    check_rows_are_stored(snapshot, sum(each.physical_rows for each in snapshot.fragments), snapshot.fragments)
    reference = SnapshotReference.of(snapshot)
    by_fragment = kept.by_fragment(snapshot.store, snapshot.fragments) if kept else [None] * len(snapshot.fragments)
    return tuple(
        BackfillTask(reference, part.id, columns, source.for_fragment(part.id), batch_size, kept_of_part)
        for part, kept_of_part in zip(snapshot.fragments, by_fragment, strict=True)
    )


def run_backfill(snapshot: Snapshot, tasks: Sequence[BackfillTask], runner: Runner, job: Job) -> list[ColumnFile]:
    """Write the files of all tasks, each weighed by the bytes of its fragment.

    The tasks have the same columns and source. If the runner has more slots than there are tasks, other tasks first
    compute pieces of large fragments. A file of a job that fails is deleted, unless the tasks keep files.
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
        tasks = [replace(task, pieces=paths.get(task.fragment_id, ())) for task in tasks]
        return _write_files(snapshot, tasks, runner, replace(job, verb=f"join pieces to {job.verb}"))
    finally:
        if not first.kept:
            snapshot.store.child(next(iter(pieces.values()))[0].path.rpartition("/")[0]).clear_or_leave()


def _pieces_of(snapshot: Snapshot, tasks: Sequence[BackfillTask], runner: Runner) -> dict[int, list[Piece]]:
    """Return the pieces of each fragment that several tasks compute; none if the runner has no slots for them."""
    first = tasks[0] if tasks else None
    if first is None or not (
        isinstance(runner, RunnerWithSlots)
        and first.source.serves_parts
        and can_join_pieces(snapshot.file_version, first.columns)
    ):
        return {}
    folder = first.kept.folder if first.kept else new_piece_folder()
    found = {}
    for task in tasks:
        fragment = snapshot.fragments_by_id[task.fragment_id]
        of_fragment = cut_into_pieces(fragment, folder)
        if of_fragment:
            found[fragment.id] = of_fragment
    if not found or len(tasks) >= runner.num_slots():
        return {}
    kept = {task.fragment_id: task.kept for task in tasks if task.kept}
    finished = [key for key in found if key in kept and kept[key].find(snapshot.store, snapshot.fragments_by_id[key])]
    return {key: of_fragment for key, of_fragment in found.items() if key not in finished}


def _size_bytes(snapshot: Snapshot, piece: Piece) -> int:
    """Return about how many bytes of its fragment's files hold the rows of a piece."""
    fragment = snapshot.fragments_by_id[piece.fragment_id]
    size_bytes = sum(file.file_size_bytes for file in fragment.files)
    return size_bytes * (piece.stop - piece.first) // fragment.physical_rows


def _write_files(snapshot: Snapshot, tasks: Sequence[BackfillTask], runner: Runner, job: Job) -> list[ColumnFile]:
    sizes = [snapshot.fragments_by_id[task.fragment_id].files for task in tasks]
    job = job.in_bytes(sum(file.file_size_bytes for file in files) for files in sizes)
    if any(task.kept for task in tasks):
        return runner.map(write_columns, tasks, job)
    job = job.with_removal(partial(remove_files_of_job, snapshot.store))
    return runner.map(write_columns, tasks, job, lambda file: pending_columns(snapshot, [file]).abandon())


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


def write_columns(task: BackfillTask) -> ColumnFile:
    """Write the fragment's file; on an error it is deleted.

    Raises `RetryableConflict` if a kept piece is gone or damaged; another attempt computes the fragment's pieces again.
    """
    snapshot = task.snapshot.open()
    fragment = snapshot.fragments_by_id[task.fragment_id]
    finished = task.kept.find(snapshot.store, fragment) if task.kept else None
    if finished is not None:
        return finished
    if task.pieces:
        written = _joined(snapshot, fragment, task)
    else:
        computed = _computed(snapshot, fragment, task.columns, task.source.opened(), task.batch_size)
        written = write_column_file(snapshot, fragment, task.columns, computed)
    if task.kept:
        task.kept.keep(snapshot.store, fragment, written)
    return written


def _joined(snapshot: Snapshot, fragment: Fragment, task: BackfillTask) -> ColumnFile:
    try:
        return join_column_pieces(snapshot, fragment, task.columns, task.pieces)
    except (CorruptFile, ObjectNotFound) as error:
        if not task.kept:
            raise
        for path in task.pieces:
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
    for field in columns.fields:  # a reader of 2.0 looks for all fields of a struct in the file that lists the struct
        known = snapshot.schema.by_id(field.id)
        if known is not None and {node.id for node in known.walk()} != {node.id for node in field.walk()}:
            raise UnsupportedFeature(
                "new values of some fields of a struct of file version 2.0", f"column {field.name!r}"
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

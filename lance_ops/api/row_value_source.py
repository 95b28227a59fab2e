"""Stage data whose rows name rows of a table by `_rowaddr` or `_rowid`, so that tasks read it.

The data is a stream of batches, a data frame of the runner's cluster, or raw files, which tasks read.

A stage is a dataset beneath the table's `data`. It is removed when the verb is done. With a checkpoint it has a name of
its own and stays after a failure: the next attempt reads it, and does not compute the data again. Clean-up removes a
stage that nobody came back for, by age.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any

import pyarrow as pa

from lance_ops import changing, transactions, writing
from lance_ops.api.arrow_input import reader_of
from lance_ops.api.merge_source import TakesFrames, paths_of
from lance_ops.changing import columns as column_changes
from lance_ops.changing import merge_insert
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.committers import MANIFEST_STORE_OPTION, open_root
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.file_names import DATA_DIR
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule, Schema
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance import ingest
from lance_ops.reading import ROW_ADDRESS, ROW_ID
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations
from lance_ops.transactions import PendingFiles

__all__ = ["names_rows", "row_value_source", "staged_row_values"]


@dataclass(frozen=True)
class _RowFiles:
    """Raw files that have the same columns; of these, one names rows."""

    files: tuple[ingest.RawFile, ...]
    schema: pa.Schema

    @classmethod
    def at(cls, paths: Sequence[str], runner: Runner) -> _RowFiles:
        """Find the files, and their columns by tasks of the runner."""
        stored = next((path for path in paths if path.rstrip("/").endswith(".lance")), None)
        if stored is not None:
            raise InvalidInput(f"{stored} is a dataset, and no column of it names rows: merge it by key instead")
        files = tuple(ingest.found_file(path, {}) for path in paths)
        return cls(files, ingest.unified_raw_schema(files, {}, case_rule=CaseRule.SENSITIVE, runner=runner))

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """The files, each with a token that changes when its content does."""
        return tuple((file.uri, file.token) for file in self.files)


def row_value_source(data: Any, schema: pa.Schema | None, runner: Runner) -> Any:
    """Return data as `staged_row_values` takes it, or as a stream that names no rows.

    The data is what `reader_of` takes, a data frame that the runner takes, or the path of a raw file or a list of them.
    Raises what `reader_of` raises, `InvalidInput` for a dataset's path or for a `schema` beside files, and
    `RawFileRefused` for a file that cannot be read.
    """
    paths = paths_of(data)
    if not paths:
        return data if _taker(runner, data) is not None else reader_of(data, schema)
    if schema is not None:
        raise InvalidInput("schema: raw files have the types of their columns")
    return _RowFiles.at(paths, runner)


def names_rows(data: Any, runner: object) -> bool:
    """Return whether a stream has a column that names rows; files and data frames of a cluster must have one."""
    is_stream = not isinstance(data, _RowFiles) and _taker(runner, data) is None
    return not is_stream or changing.key_and_values(data.schema.names)[0] is not None


@contextmanager
def staged_row_values(
    target: Snapshot, data: Any, runner: Runner, *, replaces: bool, checkpoint: str | None = None
) -> Iterator[changing.RowValues]:
    """Give the staged rows of `data`: with `replaces` in the types of the target's columns, else in their own.

    `data` is what `row_value_source` returns. Raises `InvalidInput` for data without a column of keys, or with nothing
    else, and `SchemaMismatch` naming a column that is to be replaced and is not there, or a column or field of a struct
    that the data lacks. Raises `UnsupportedFeature` for a column of blobs that cannot be in a file of its own.
    """
    taker = _taker(runner, data)
    names = list(data.columns) if taker is not None else data.schema.names
    key, chosen = changing.key_and_values(names)
    if key is None:
        raise InvalidInput(
            f"the data has no column {ROW_ADDRESS} or {ROW_ID} that names rows; it has {', '.join(names)}"
        )
    if not chosen:
        raise InvalidInput(f"the data has no column beside {key!r}")
    contents = data.contents if isinstance(data, _RowFiles) else ()
    folder = by_tasks.new_folder() if checkpoint is None else _folder_of(checkpoint, key, chosen, contents)
    uri, store = f"{target.uri}/{folder}", target.store.child(folder)
    options = {name: value for name, value in target.storage_options.items() if name != MANIFEST_STORE_OPTION}
    version = FileVersion.V2_0 if target.file_version is FileVersion.V0_1 else target.file_version
    done = False
    try:
        there = Snapshot.open_if_exists(uri, options)
        if there is None or there.version < _WITH_ROWS:
            store.clear()
            if taker is not None:
                taker.write_row_values(data, key, chosen, target, uri, options, version, replaces=replaces)
            else:
                if replaces and not isinstance(data, _RowFiles):
                    merge_insert.check_struct_fields(data.schema, target.schema.fields)
                if replaces:
                    column_changes.check_no_blobs(
                        Schema(tuple(each for each in target.schema.fields if each.name in chosen))
                    )
                like = target.schema.to_arrow_storage() if replaces else None
                stage = _empty_stage(data.schema, chosen, like, uri, options, version)
                if isinstance(data, _RowFiles):
                    _append_files(stage, data, key, runner, Job.on("stage values for", target.uri, target.version))
                else:
                    batches = (batch.select([key, *chosen]).rename_columns(stage.schema.names) for batch in data)
                    writing.append(stage, batches, writing.FragmentLimits(), {})
        staged = Snapshot.open(uri, storage_options=options)
        yield changing.RowValues(by_tasks.SourceRows.of(staged), by_id=changing.names_row_ids(key))
        done = True
    except SchemaMismatch as error:  # of a key, which the stage has under its own name
        raise SchemaMismatch(str(error).replace(repr(changing.ROW_KEY), repr(key))) from error
    finally:
        if checkpoint is None:
            store.clear_or_leave()
        elif done:
            store.clear()  # it must not fail in silence: the next call of this checkpoint would take the values over


_WITH_ROWS = 2
"""The version of a stage that has rows: the first one creates it."""


def _taker(runner: object, data: Any) -> TakesFrames | None:
    return runner if isinstance(runner, TakesFrames) and runner.takes(data) else None


def _folder_of(checkpoint: str, key: str, names: Sequence[str], contents: Sequence[tuple[str, str]]) -> str:
    """Return the stage of a checkpoint. Files of other `contents` have a stage of their own."""
    if not checkpoint:
        raise InvalidInput("a checkpoint has a name")
    digest = hashlib.sha256(repr((checkpoint, key, sorted(names), contents)).encode()).hexdigest()
    return f"{DATA_DIR}/backfill-rows-{digest[:32]}"


def _empty_stage(
    schema: pa.Schema,
    names: Sequence[str],
    like: pa.Schema | None,
    uri: str,
    options: dict[str, str],
    version: FileVersion,
) -> Snapshot:
    """Create a stage without rows: a column of keys, and these columns in their own types or in those of `like`."""
    given = pa.schema([schema.field(name) for name in names])
    if like is not None:
        lacking = next((name for name in names if name not in like.names), None)
        if lacking is not None:
            raise SchemaMismatch(f"column {lacking!r} is not in the table (which has {', '.join(like.names)})")
        given = pa.schema([like.field(name) for name in names])
    stored = writing.table_schema(pa.schema([pa.field(changing.ROW_KEY, pa.uint64()), *given]), version)
    column_changes.check_no_blobs(stored)
    return writing.create_dataset(open_root(uri, options), stored, PendingFiles(), version)


@dataclass(frozen=True)
class _FileTask:
    """A raw file to write to a stage; `fitting` has the types of the stage, and the names of the file."""

    file: ingest.RawFile
    fitting: ingest.RowFitting
    key: str
    schema: Schema
    version: FileVersion
    uri: str
    storage_options: Mapping[str, str] = field(repr=False)


def _append_files(stage: Snapshot, source: _RowFiles, key: str, runner: Runner, job: Job) -> None:
    """Write the files by tasks, and commit their fragments. What is written before a failure is cleared with the stage.

    Text is read in the types of the stage. All files must have all columns: a null would replace a value.
    """
    known = ingest.plain_schema(stage.schema).append(pa.field(key, pa.uint64()))
    fitting = ingest.RowFitting.exact(source.schema, known)
    tasks = [
        _FileTask(file, fitting, key, stage.schema, stage.file_version, stage.uri, stage.storage_options)
        for file in source.files
    ]
    written = runner.map(_write_file, tasks, job.in_bytes(file.size_bytes for file in source.files))
    fragments = tuple(fragment for each in written for fragment in each)
    pending = PendingFiles.of_fragments(FileLocations(stage.store), fragments)
    writing.commit_operation(stage, transactions.Append(fragments), pending=pending)


def _write_file(task: _FileTask) -> tuple[Fragment, ...]:
    """Write the rows of a file as fragments."""
    store, names = open_root(task.uri, task.storage_options).store, task.schema.names
    columns = [task.key, *(name for name in names if name != changing.ROW_KEY)]
    with ingest.RawReader({}) as reader, writing.FragmentWriter(store, task.schema, task.version) as writer:
        for batch in task.fitting.rows(task.file, reader):
            writer.write(batch.select(columns).rename_columns(names))
        return tuple(writer.finish())

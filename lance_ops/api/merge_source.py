"""Turn the source of a merge into a table in memory, or into rows of a dataset that tasks read.

A dataset, and a scanner of whole columns with a filter, are read where they are. A data frame of a cluster and raw
files first become a staged dataset: tasks write it beneath the target's `data`, and it is removed when the merge is
done. Clean-up removes one that a crash left, by age.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.types as pt

from lance_ops import writing
from lance_ops.api.arrow_input import reader_of
from lance_ops.api.scanning import LanceScanner
from lance_ops.api.version_handle import Handle
from lance_ops.blobs import schema_to_write
from lance_ops.changing import merge_insert
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.committers import MANIFEST_STORE_OPTION, open_root
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.schema import CaseRule, Field, spelled_as, split_path
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance import ingest
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import PendingFiles

__all__ = [
    "MergeSource",
    "TakesFrames",
    "check_keys_fit_frames",
    "merge_source",
    "paths_of",
    "read_keys",
    "stored_files",
    "stored_rows",
]

MergeSource: TypeAlias = "pa.Table | by_tasks.SourceRows"
"""Rows in memory, or rows that tasks read."""

_LARGE_BYTES = 64 << 20
"""A dataset with larger files is read by tasks, even without a runner."""
_MANY_ROWS = 1 << 16
"""Rows in memory that are too many to go with every task to a cluster."""


@runtime_checkable
class TakesFrames(Protocol):
    """A runner whose cluster holds data frames of its own, such as `lance_ops.spark.OnSpark`."""

    def takes(self, data: object) -> bool:
        """Return whether the data is such a data frame."""
        ...

    def write_frame(
        self,
        frame: Any,
        like: Snapshot,
        uri: str,
        storage_options: Mapping[str, str],
        columns: Sequence[str],
        keys: Sequence[str],
    ) -> None:
        """Write a data frame, or only these columns of it, as a new dataset.

        The dataset has the types of `like`, and spells names as `like` does. Raises `SchemaMismatch` for one of the
        `keys` that the cast to its type in `like` may change.
        """
        ...

    def check_keys_fit_frames(self, target: Snapshot, keys: Sequence[str]) -> None:
        """Raise `UnsupportedFeature` for a key of which `target` has values that a data frame cannot hold."""
        ...

    def write_row_values(
        self,
        frame: Any,
        key: str,
        names: Sequence[str],
        target: Snapshot,
        uri: str,
        storage_options: Mapping[str, str],
        version: FileVersion,
        *,
        replaces: bool,
    ) -> None:
        """Write the columns `names` of a data frame as a new dataset, with `key` as its column `ROW_KEY`.

        They are in the types and the spelling of `target` if it `replaces` columns, and else in those of the frame.
        Raises `SchemaMismatch` for columns that cannot replace those of `target`, or be new ones of it.
        """
        ...


@contextmanager
def merge_source(
    target: Snapshot,
    data: Any,
    schema: pa.Schema | None,
    runner: Runner | None,
    on: tuple[str, ...] = (),
    *,
    keys: tuple[str, ...] = (),
    replaces: bool = True,
) -> Iterator[MergeSource]:
    """Give the rows of `data`; with `on`, only these columns of a dataset. What is staged is removed in the end.

    Raw files and a data frame without one of the columns `keys` are refused, as `InvalidInput`, before they are staged.

    `data` is what `reader_of` takes, the path of a dataset, of a raw file or a list of them, or a data frame that the
    runner takes.
    Raises `InvalidInput` for a `schema` beside files or such a data frame. Raises `SchemaMismatch` naming a column that
    the target does not have, a key (of `keys`, or else of `on`) that tasks would cast to other values, or, where the
    rows are staged and one of them `replaces` a row, a field that a struct in a list or a map lacks. Raises
    `UnsupportedFeature` for a key of which the target has values that the data frame cannot hold.
    """
    stage = _Stage(target, runner or InThreads(), keys, on, replaces=replaces)
    try:
        yield _rows_of(stage, data, schema, runner, on)
    finally:
        stage.clear()


def check_keys_fit_frames(target: Snapshot, data: Any, keys: Sequence[str], runner: Runner | None) -> None:
    """Check the keys of `target`, a later version than the one that `merge_source` was called with.

    Raises `UnsupportedFeature` for a key of which the version has values that the data frame cannot hold.
    """
    taker = _taker(runner, data)
    if taker is not None:
        taker.check_keys_fit_frames(target, keys)


@contextmanager
def stored_files(
    target: Snapshot, paths: Sequence[str], runner: Runner, on: tuple[str, ...] = (), *, keys: tuple[str, ...] = ()
) -> Iterator[by_tasks.SourceRows]:
    """Give the rows of raw files or of one dataset, by path, as rows that tasks read; see `merge_source`."""
    stage = _Stage(target, runner, keys, on)
    try:
        yield _rows_of_dataset(stage, paths[0], on) if _is_dataset(paths) else stage.files(list(paths), on)
    finally:
        stage.clear()


def read_keys(target: Snapshot, keys: Any, on: tuple[str, ...], runner: Runner | None) -> pa.Table:
    """Return the columns `on` of `keys`, which is data as for `merge_source`, in the types of the target.

    This process holds the keys. Raw files and a data frame of the runner are first copied beneath the target's `data`,
    and the copy is removed again here; other data is copied nowhere. Raises as `delete_by_keys` does for them.
    """
    is_copied = bool(paths_of(keys)) or _taker(runner, keys) is not None
    with merge_source(target, keys, None, runner if is_copied else None, on) as source:
        table = source if isinstance(source, pa.Table) else _held(source, schema_to_write(target.schema))
    request = merge_insert.MergeRequest(on, merge_insert.WhenMatched.DELETE, repeated_keys=True)
    bound = merge_insert.bind_merge(target, request, table)
    return pa.table(bound.source_keys(), names=list(merge_insert.merge_keys(target, request)))


def stored_rows(data: Any) -> by_tasks.SourceRows | None:
    """Return a dataset, or a scanner whose rows are whole ones of stored columns, as rows that tasks can read."""
    if isinstance(data, Handle):
        return by_tasks.SourceRows.of(data.snapshot)
    if isinstance(data, LanceScanner):
        stored = data._stored_rows()
        return None if stored is None else by_tasks.SourceRows.of(*stored)
    return None


def paths_of(data: Any) -> list[str]:
    """Return the paths that the data is: one, or a list of them; none for other data."""
    several = data if isinstance(data, list | tuple) else [data]
    if not several or not all(isinstance(each, str | PathLike) for each in several):
        return []
    return [fspath(each) for each in several]


def _rows_of(
    stage: _Stage, data: Any, schema: pa.Schema | None, runner: Runner | None, on: tuple[str, ...]
) -> MergeSource:
    paths, frames = paths_of(data), _taker(runner, data)
    if schema is not None and (paths or frames):
        raise InvalidInput("schema: raw files and data frames of a cluster are cast to the table's types")
    if _is_dataset(paths):
        return _rows_of_dataset(stage, paths[0], on)
    if paths:
        return stage.files(paths, on)
    if frames is not None:
        return stage.frame(data, frames, on)
    stored = stored_rows(data) if schema is None else None
    if stored is not None and (runner is not None or _size_bytes(stored) > _LARGE_BYTES):
        return stage.checked(replace(stored, columns=on) if on else stored)
    table = reader_of(data, schema).read_all()
    if on:
        table = table.select([name for name in table.schema.names if name in _columns_of(on, table.schema)])
    is_remote = runner is not None and not isinstance(runner, InThreads)
    return stage.table(table) if is_remote and table.num_rows > _MANY_ROWS else table


def _is_dataset(paths: Sequence[str]) -> bool:
    return len(paths) == 1 and (paths[0].rstrip("/").endswith(".lance") or os.path.isdir(paths[0]))


def _rows_of_dataset(stage: _Stage, path: str, on: tuple[str, ...]) -> by_tasks.SourceRows:
    snapshot = Snapshot.open(path, storage_options=stage.storage_options)
    return stage.checked(by_tasks.SourceRows.of(snapshot, on or None))


def _taker(runner: object, data: Any) -> TakesFrames | None:
    return runner if isinstance(runner, TakesFrames) and runner.takes(data) else None


def _columns_of(on: tuple[str, ...], schema: pa.Schema) -> set[str]:
    """Return the columns that paths are in."""
    return {path if path in schema.names else split_path(path)[0] for path in on}


def _check_has(names: Iterable[str], keys: Iterable[str]) -> None:
    """Raise `InvalidInput` for a key that is in no column; the case of names is not looked at."""
    listed = list(names)
    known = {name.lower() for name in listed}
    for key in keys:
        if key.lower() not in known and split_path(key)[0].lower() not in known:
            raise InvalidInput(
                f"the source has no column {key!r}, which the merge matches on; it has {', '.join(listed)}"
            )


def _held(rows: by_tasks.SourceRows, wanted: pa.Schema) -> pa.Table:
    parts = [found.table for found in rows.scan(rows.schema.names, wanted)]
    return pa.concat_tables(parts) if parts else rows.no_rows()


def _size_bytes(rows: by_tasks.SourceRows) -> int:
    return rows.version.open().size_bytes


class _Stage:
    """Datasets of one version beneath the target's `data`."""

    def __init__(
        self, target: Snapshot, runner: Runner, keys: tuple[str, ...], on: tuple[str, ...], *, replaces: bool = True
    ) -> None:
        self._target, self._runner, self._keys, self._replaces = target, runner, keys, replaces
        self._joined = keys or on
        self._stored = target.schema.to_arrow_storage()
        self._folder: str | None = None
        self.storage_options = {
            key: value for key, value in target.storage_options.items() if key != MANIFEST_STORE_OPTION
        }

    def checked(self, rows: by_tasks.SourceRows) -> by_tasks.SourceRows:
        """Return the rows unchanged. Raises `SchemaMismatch` if the cast of a key's type may change its values."""
        self._check_key_casts(rows.schema.to_arrow_storage())
        return rows

    def frame(self, data: Any, runner: TakesFrames, on: tuple[str, ...]) -> by_tasks.SourceRows:
        """Write a data frame, or only its columns `on`."""
        _check_has(data.columns, self._keys)
        runner.check_keys_fit_frames(self._target, self._joined)
        uri = self._new_uri()
        runner.write_frame(data, self._target, uri, self.storage_options, on, self._joined)
        return by_tasks.SourceRows.of(Snapshot.open(uri, storage_options=self.storage_options))

    def files(self, paths: list[str], on: tuple[str, ...]) -> by_tasks.SourceRows:
        """Write raw files, or only their columns `on`, in the table's types."""
        files = tuple(map(_raw_file, paths))
        given = ingest.unified_raw_schema(files, {}, runner=self._runner)
        _check_has(given.names, (*self._keys, *on))
        typed = tuple(file for file in files if not ingest.is_text_file(file.uri))  # text is read in the table's types
        if typed:
            has_text = len(typed) < len(files)
            stored = ingest.unified_raw_schema(typed, {}, runner=self._runner) if has_text else given
            self._check_key_casts(stored)
        others = ingest.ExtraColumns.IGNORE if on else ingest.ExtraColumns.REFUSE
        uri = self._create(on or self._checked_paths(spelled_as(given, self._stored, CaseRule.INSENSITIVE)))
        ingest.ingest(
            uri,
            [ingest.IngestBatch("merge", files)],
            storage_options=self.storage_options,
            options=ingest.IngestOptions(extra_columns=others),
            runner=self._runner,
        )
        return by_tasks.SourceRows.of(Snapshot.open(uri, storage_options=self.storage_options))

    def table(self, table: pa.Table) -> by_tasks.SourceRows:
        """Write rows that are in memory, for tasks that run elsewhere."""
        self._check_key_casts(table.schema)
        uri = self._create(self._checked_paths(table.schema))
        empty = Snapshot.open(uri, storage_options=self.storage_options)
        return by_tasks.SourceRows.of(writing.append(empty, table.to_batches(), writing.FragmentLimits(), {}))

    def clear(self) -> None:
        """Remove what was staged, or leave it to clean-up."""
        if self._folder is not None:
            self._target.store.child(self._folder).clear_or_leave()

    def _create(self, paths: Iterable[str]) -> str:
        """Create a dataset without rows that has these columns and struct fields of the target."""
        uri = self._new_uri()
        schema = self._target.schema.project(paths)
        version = self._target.file_version
        if version is FileVersion.V0_1:  # whose dictionaries would need a commit of their own
            version = FileVersion.V2_0
        writing.create_dataset(open_root(uri, self.storage_options), schema, PendingFiles(), version)
        return uri

    def _checked_paths(self, given: pa.Schema) -> Iterator[str]:
        """Return the paths of the target's columns and struct fields that a source has.

        Raises `SchemaMismatch` for a field that a struct in a list or a map lacks, if a row replaces one.
        """
        if self._replaces:
            merge_insert.check_structs_in_lists(given, self._target.schema.fields)
        return _paths_of(given, self._target.schema.fields, self._target.uri)

    def _check_key_casts(self, given: pa.Schema) -> None:
        merge_insert.check_key_casts(given, self._joined, self._stored)

    def _new_uri(self) -> str:
        self._folder = by_tasks.new_folder()
        return f"{self._target.uri}/{self._folder}"


def _paths_of(given: Iterable[pa.Field], table: Sequence[Field], uri: str, above: str = "") -> Iterator[str]:
    """Yield the paths of the table's fields that a schema has; of a struct only its fields that are there."""
    for field in given:
        found = next((node for node in table if node.name == field.name), None)
        if found is None:
            names = ", ".join(node.name for node in table)
            raise SchemaMismatch(
                f"column {above}{field.name} is not in the table {uri} (which has {names}): drop it or add the column"
            )
        path = above + (f"`{found.name}`" if "." in found.name else found.name)
        if pt.is_struct(field.type) and found.children and not found.is_blob_v2:
            yield from _paths_of(field.type, found.children, uri, f"{path}.")
        else:
            yield path


def _raw_file(path: str) -> ingest.RawFile:
    """Return a raw file with its size, which decides how files are shared among tasks."""
    local = ingest.local_path(path)
    if local is not None:
        return ingest.RawFile(path, os.stat(local).st_size if os.path.exists(local) else 0, "merged once")
    with ingest.failures_of_store(path, {}):
        filesystem, name = ingest.remote_file_system(path, {})
        return ingest.RawFile(path, int(filesystem.size(name) or 0), "merged once")

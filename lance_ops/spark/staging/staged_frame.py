"""Write a DataFrame as a dataset that tasks of this library read, in the types of the table that it is meant for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lance_ops.changing import ROW_KEY
from lance_ops.changing.columns import check_no_blobs
from lance_ops.changing.merge_insert import check_key_casts, check_struct_fields
from lance_ops.committers import open_root
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.schema import CaseRule, Schema, split_path
from lance_ops.core.versions import FileVersion
from lance_ops.runners import ReportProgress
from lance_ops.snapshot import Snapshot
from lance_ops.spark.frame_write import write_with
from lance_ops.spark.running import WorkerTasks
from lance_ops.spark.translation import (
    arrow_schema_of,
    quoted_path,
    schema_from_spark,
    session_case_rule,
    stored_paths,
)
from lance_ops.transactions import PendingFiles
from lance_ops.writing import create_dataset, table_schema

__all__ = ["write_frame", "write_row_values"]


def write_frame(
    runner: WorkerTasks,
    frame: DataFrame,
    like: Snapshot,
    uri: str,
    storage_options: Mapping[str, str],
    columns: Sequence[str] = (),
    keys: Sequence[str] = (),
) -> None:
    """Write a DataFrame, or the columns that these paths are in, as a new dataset with the columns of `like` it has.

    Spark's tasks cast and write the rows, as those of an append to `like` would. Raises `SchemaMismatch` naming a
    column that the DataFrame or `like` does not have, or one of `keys` that the cast to its type in `like` may change.
    """
    session = runner.session
    rule = session_case_rule(session)
    columns = tuple(dict.fromkeys(_column_of(path, frame, rule) for path in columns))
    missing = [name for name in columns if rule.find(name, frame.columns) is None]
    if missing:
        raise SchemaMismatch(f"the DataFrame has no column {', '.join(missing)}: it has {', '.join(frame.columns)}")
    _check_unambiguous(frame, columns, rule)
    check_key_casts(arrow_schema_of(frame.schema), keys, like.schema.to_arrow_storage())
    chosen = frame.select(*map(quoted_path, columns)) if columns else frame
    version = like.file_version
    if version is FileVersion.V0_1:  # whose dictionaries would need a commit of their own
        version = FileVersion.V2_0
    create_dataset(open_root(uri, storage_options), _part_of(session, chosen, like), PendingFiles(), version)
    write_with(chosen, uri, "append", {}, storage_options, exact=True, on_progress=runner.on_progress)


def _column_of(path: str, frame: DataFrame, rule: CaseRule) -> str:
    """Return the column that a path is in."""
    return path if rule.find(path, frame.columns) is not None else split_path(path)[0]


def write_row_values(
    session: SparkSession,
    frame: DataFrame,
    key: str,
    names: Sequence[str],
    target: Snapshot,
    uri: str,
    storage_options: Mapping[str, str],
    version: FileVersion,
    *,
    replaces: bool,
    on_progress: ReportProgress | None = None,
) -> None:
    """Write these columns of a DataFrame as a new dataset, with the column `key` as `ROW_KEY`, a number of 64 bits.

    The columns have the types that a new table would have, by hints in their metadata too, or with `replaces` those of
    the table `target`. Raises `SchemaMismatch` naming a column that `target` lacks, or with new columns one that it
    has, a field of a struct that the DataFrame lacks, a name that is there twice, or a key that is no row's, and
    `UnsupportedFeature` for a column of blobs that cannot be in a file of its own.
    """
    rule = session_case_rule(session)
    _check_unambiguous(frame, [key, *names], rule)
    chosen = frame.select(*(quoted_path(name) for name in names))
    if replaces:
        check_struct_fields(arrow_schema_of(chosen.schema), target.schema.fields)
        replaced = _part_of(session, chosen, target)
        check_no_blobs(replaced)
        given = replaced.to_arrow_storage()
    else:
        _check_names_are_new(names, target, rule)
        given = schema_from_spark(arrow_schema_of(chosen.schema))
    schema = table_schema(pa.schema([pa.field(ROW_KEY, pa.uint64()), *given]), version)
    check_no_blobs(schema)
    create_dataset(open_root(uri, storage_options), schema, PendingFiles(), version)
    keyed = frame.select(frame[quoted_path(key)].alias(ROW_KEY), *(quoted_path(name) for name in names))
    write_with(keyed, uri, "append", {}, storage_options, exact=True, on_progress=on_progress)


def _check_unambiguous(frame: DataFrame, names: Sequence[str], rule: CaseRule) -> None:
    """Raise `SchemaMismatch` for one of the names that Spark would not find, since several columns have it."""
    meant = Counter(_meant(name, rule) for name in frame.columns)
    twice = next((name for name in names if meant[_meant(name, rule)] > 1), None)
    if twice is not None:
        raise SchemaMismatch(f"column {twice!r} is there twice in the DataFrame: drop or rename one")


def _check_names_are_new(names: Sequence[str], target: Snapshot, rule: CaseRule) -> None:
    for name in names:
        there = rule.find(name, target.schema.names)
        if there is not None:
            raise SchemaMismatch(f"{target.uri} has a column {there!r}: give {name!r} another name")


def _meant(name: str, rule: CaseRule) -> str:
    return name if rule is CaseRule.SENSITIVE else name.lower()


def _part_of(session: SparkSession, frame: DataFrame, like: Snapshot) -> Schema:
    """Return the columns and struct fields of `like` that the DataFrame has."""
    try:
        given = arrow_schema_of(frame.schema)
        return like.schema.project(list(stored_paths(given, like.schema.fields, session_case_rule(session))))
    except InvalidInput as error:
        raise SchemaMismatch(f"{error}: drop it from the DataFrame, or add the column to {like.uri}") from error

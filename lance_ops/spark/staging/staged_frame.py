"""Write a DataFrame as a dataset that tasks of this library read, in the types of the table that it is meant for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lance_ops.changing import ROW_KEY
from lance_ops.changing.merge_insert import check_key_casts
from lance_ops.committers import open_root
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Snapshot
from lance_ops.spark.frame_write import write
from lance_ops.spark.translation import arrow_schema_of, schema_from_spark, session_case_rule, stored_paths
from lance_ops.transactions import PendingFiles
from lance_ops.writing import create_dataset, table_schema

__all__ = ["write_frame", "write_row_values"]


def write_frame(
    session: SparkSession,
    frame: DataFrame,
    like: Snapshot,
    uri: str,
    storage_options: Mapping[str, str],
    columns: Sequence[str] = (),
    keys: Sequence[str] = (),
) -> None:
    """Write a DataFrame, or these columns of it, as a new dataset with the columns of `like` that it has.

    Spark's tasks cast and write the rows, as those of an append to `like` would. Raises `SchemaMismatch` naming a
    column that the DataFrame or `like` does not have, or one of `keys` that the cast to its type in `like` may change.
    """
    rule = session_case_rule(session)
    missing = [name for name in columns if rule.find(name, frame.columns) is None]
    if missing:
        raise SchemaMismatch(f"the DataFrame has no column {', '.join(missing)}: it has {', '.join(frame.columns)}")
    check_key_casts(arrow_schema_of(frame.schema), keys, like.schema.to_arrow_storage())
    chosen = frame.select(*map(_quoted, columns)) if columns else frame
    version = like.file_version
    if version is FileVersion.V0_1:  # whose dictionaries would need a commit of their own
        version = FileVersion.V2_0
    create_dataset(open_root(uri, storage_options), _part_of(session, chosen, like), PendingFiles(), version)
    write(chosen, uri, storage_options=storage_options)


def write_row_values(
    session: SparkSession,
    frame: DataFrame,
    key: str,
    names: Sequence[str],
    like: Snapshot | None,
    uri: str,
    storage_options: Mapping[str, str],
    version: FileVersion,
) -> None:
    """Write these columns of a DataFrame as a new dataset, with the column `key` as `ROW_KEY`, a number of 64 bits.

    The columns have the types that a new table would have, by hints in their metadata too, or those of `like`. Raises
    `SchemaMismatch` naming a column that `like` does not have, or a key that is no row's.
    """
    chosen = frame.select(*(_quoted(name) for name in names))
    if like is None:
        given = schema_from_spark(arrow_schema_of(chosen.schema))
    else:
        given = _part_of(session, chosen, like).to_arrow_storage()
    schema = table_schema(pa.schema([pa.field(ROW_KEY, pa.uint64()), *given]), version)
    create_dataset(open_root(uri, storage_options), schema, PendingFiles(), version)
    keyed = frame.select(frame[_quoted(key)].alias(ROW_KEY), *(_quoted(name) for name in names))
    write(keyed, uri, storage_options=storage_options)


def _part_of(session: SparkSession, frame: DataFrame, like: Snapshot) -> Schema:
    """Return the columns and struct fields of `like` that the DataFrame has."""
    try:
        given = arrow_schema_of(frame.schema)
        return like.schema.project(list(stored_paths(given, like.schema.fields, session_case_rule(session))))
    except InvalidInput as error:
        raise SchemaMismatch(f"{error}: drop it from the DataFrame, or add the column to {like.uri}") from error


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

"""Write a DataFrame as a dataset that tasks of this library read, in the types of the table that it is meant for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from lance_ops.committers import open_root
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Snapshot
from lance_ops.spark.private_options import private_format
from lance_ops.spark.translation import CaseRule, stored_paths
from lance_ops.transactions import PendingFiles
from lance_ops.writing import create_dataset

__all__ = ["write_frame"]


def write_frame(
    session: SparkSession,
    frame: DataFrame,
    like: Snapshot,
    uri: str,
    storage_options: Mapping[str, str],
    columns: Sequence[str] = (),
) -> None:
    """Write a DataFrame, or these columns of it, as a new dataset with the columns of `like` that it has.

    Spark's tasks cast and write the rows, as those of an append to `like` would. Raises `SchemaMismatch` naming a
    column that `like` does not have.
    """
    chosen = frame.select(*columns) if columns else frame
    rule = CaseRule(session.conf.get("spark.sql.caseSensitive", "false") == "true")
    try:
        paths = list(stored_paths(to_arrow_schema(chosen.schema, timezone="UTC"), like.schema.fields, rule))
    except InvalidInput as error:
        raise SchemaMismatch(f"{error}: drop it from the DataFrame, or add the column to {like.uri}") from error
    version = like.file_version
    if version is FileVersion.V0_1:  # whose dictionaries would need a commit of their own
        version = FileVersion.V2_0
    create_dataset(open_root(uri, storage_options), like.schema.project(paths), PendingFiles(), version)
    writer = chosen.write.format(private_format(session, storage_options)).mode("append")
    writer.option("case_sensitive", str(rule.value).lower()).save(uri)

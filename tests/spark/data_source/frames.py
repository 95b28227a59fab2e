"""Frames of `format("lance")`, and which data files a table has and names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from lance_ops.api import dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["data_files", "frame_of", "load", "named_files", "save", "values"]


def load(spark: SparkSession, uri: str, **options: Any) -> DataFrame:
    return spark.read.format("lance").options(**options).load(uri)


def values(frame: DataFrame, column: str = "x") -> list[Any]:
    return [row[column] for row in frame.select(column).collect()]


def frame_of(spark: SparkSession, rows: int, partitions: int = 2, start: int = 0) -> DataFrame:
    return spark.range(start, start + rows, numPartitions=partitions).select(
        functions.col("id").alias("x"), functions.concat(functions.lit("n"), "id").alias("name")
    )


def save(frame: DataFrame, uri: str, mode: str = "append", **options: Any) -> None:
    frame.write.format("lance").mode(mode).options(**options).save(uri)


def data_files(uri: str) -> set[str]:
    return {path.name for path in Path(uri, "data").iterdir()} if Path(uri, "data").exists() else set()


def named_files(uri: str) -> set[str]:
    snapshot = dataset(uri).snapshot
    return {file.path for fragment in snapshot.fragments for file in fragment.files}

"""Run plans on Spark, and read and write tables as `format("lance")`. Only this room imports pyspark."""

from __future__ import annotations

from lance_ops.core.errors import MissingPackage

try:
    import pyspark  # noqa: F401 - to find out whether it is installed
except ImportError as error:
    raise MissingPackage("lance_ops.spark", "pyspark", "spark", str(error)) from error

from lance_ops.spark.data_source import LanceSource
from lance_ops.spark.fragment_map import map_fragments
from lance_ops.spark.private_options import private_format
from lance_ops.spark.runner import OnSpark
from lance_ops.spark.session import get_or_create
from lance_ops.spark.table_query import TableQuery, table

__all__ = [
    "LanceSource",
    "OnSpark",
    "TableQuery",
    "get_or_create",
    "map_fragments",
    "private_format",
    "table",
]

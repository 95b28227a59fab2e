"""Run plans on Spark, and read and write tables as `format("lance")`. Only this room imports pyspark."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from lance_ops.core.errors import MissingPackage
from lance_ops.core.lazy_import import import_on_first_use

try:  # no import: the workers' daemon chooses first which pyspark it imports
    _found, _reason = find_spec("pyspark"), "it is not installed"
except ImportError as error:
    _found, _reason = None, str(error)
if _found is None:
    raise MissingPackage("lance_ops.spark", "pyspark", "spark", _reason)

if TYPE_CHECKING:
    from lance_ops.spark.data_source import LanceSource
    from lance_ops.spark.fragment_map import map_fragments
    from lance_ops.spark.frame_write import write
    from lance_ops.spark.history import merge_history
    from lance_ops.spark.java import find_java
    from lance_ops.spark.on_spark import OnSpark
    from lance_ops.spark.private_options import private_format
    from lance_ops.spark.session import get_or_create
    from lance_ops.spark.sql_access import create_view, register_functions, sql, use_namespace
    from lance_ops.spark.table_query import TableQuery, table

__all__ = [
    "LanceSource",
    "OnSpark",
    "TableQuery",
    "create_view",
    "find_java",
    "get_or_create",
    "map_fragments",
    "merge_history",
    "private_format",
    "register_functions",
    "sql",
    "table",
    "use_namespace",
    "write",
]

_MODULES = {
    "LanceSource": "data_source",
    "OnSpark": "on_spark",
    "TableQuery": "table_query",
    "create_view": "sql_access",
    "find_java": "java",
    "get_or_create": "session",
    "map_fragments": "fragment_map",
    "merge_history": "history",
    "private_format": "private_options",
    "register_functions": "sql_access",
    "sql": "sql_access",
    "table": "table_query",
    "use_namespace": "sql_access",
    "write": "frame_write",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

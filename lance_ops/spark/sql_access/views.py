"""Offer Lance tables to Spark SQL by temporary views and a table function.

Spark's catalogs cannot hold Python data sources, so `CREATE TABLE … USING lance`, `VERSION AS OF` and `DELETE` do not
work. A view shows one version of a table, and `INSERT INTO` a view appends to the table:

    create_view(spark, "flights", uri)                          SELECT …  FROM flights
    create_view(spark, "flights_before", uri, version=3)        … EXCEPT SELECT … FROM flights_before
    register_functions(spark)                                   SELECT * FROM lance_versions('/data/flights.lance')

For other changes (delete, compact, …), call the methods of `lance_ops.dataset(uri)` with `OnSpark` as runner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udtf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.udtf import UserDefinedTableFunction

from lance_ops.core.errors import InvalidInput
from lance_ops.core.redaction import public_uri
from lance_ops.maintenance.health import VersionSummary, timeline
from lance_ops.snapshot import Snapshot
from lance_ops.spark.private_options import private_format

__all__ = ["create_view", "register_functions"]

_VERSIONS = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("num_rows", pa.int64()),
        ("num_fragments", pa.int64()),
        ("num_deleted_rows", pa.int64()),
        ("size_bytes", pa.int64()),
        ("indexed_ratio", pa.float64()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("batches", pa.list_(pa.field("element", pa.string()))),
    ]
)


def create_view(
    session: SparkSession,
    name: str,
    uri: str,
    *,
    version: int | None = None,
    tag: str | None = None,
    filter: str | None = None,  # noqa: A002 - the option's name
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Create or replace a temporary view of a version, by default of the version that is newest now.

    Rows inserted into the view are in the table at once. The view shows them when it is created again. The storage
    options are in no plan and no log of Spark; the URI and the filter are. Raises `InvalidInput`, without showing it,
    for a URI that holds a secret.
    """
    if public_uri(uri) != uri:
        raise InvalidInput("a URI with a password, token or signature in it: pass credentials in storage_options")
    options = {"path": uri, "filter": filter, "tag": tag, "version": None if version is None else str(version)}
    given = ", ".join(f"{_quoted(key)} {_literal(value)}" for key, value in options.items() if value is not None)
    source = private_format(session, storage_options)
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {_quoted(name)} USING {_quoted(source)} OPTIONS ({given})")


def register_functions(session: SparkSession) -> None:
    """Register the table function `lance_versions(uri)` in the session."""
    table_function = arrow_udtf(_LanceVersions, returnType=from_arrow_schema(_VERSIONS))
    session.udtf.register("lance_versions", cast(UserDefinedTableFunction, table_function))


class _LanceVersions:
    """The retained versions of a dataset, oldest first."""

    def eval(self, uri: pa.Array) -> Iterator[pa.Table]:
        for path in uri.to_pylist():
            yield pa.Table.from_pylist([_row(summary) for summary in timeline(Snapshot.open(path))], schema=_VERSIONS)


def _row(summary: VersionSummary) -> dict[str, object]:
    return {name: getattr(summary, name) for name in _VERSIONS.names}


def _quoted(name: str) -> str:
    if not name:
        raise InvalidInput("a view needs a name")
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

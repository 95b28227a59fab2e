"""Show Lance tables to Spark SQL as temporary views.

A view shows one version of a table. `INSERT INTO` a view that names no version appends to the table:

    create_view(spark, "flights", uri)                          SELECT …  FROM flights
    create_view(spark, "flights_before", uri, version=3)        … EXCEPT SELECT … FROM flights_before
    create_view(spark, "flights_tried", uri, branch="trial")    SELECT …  FROM flights_tried

Spark's catalogs cannot hold Python data sources, so other statements are for `lance_ops.spark.sql`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from pyspark.sql import SparkSession

from lance_ops.core.errors import InvalidInput
from lance_ops.core.redaction import public_uri
from lance_ops.reading import bind_filter
from lance_ops.spark.data_source import BlobHandling, SourceOptions
from lance_ops.spark.private_options import private_format
from lance_ops.spark.session_kind import check_is_running
from lance_ops.spark.sql_access.words import text_literal
from lance_ops.spark.translation import quoted_path
from lance_ops.store import is_local, open_store

__all__ = ["create_view"]


def create_view(
    session: SparkSession,
    name: str,
    uri: str,
    *,
    version: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    timestamp: datetime | str | None = None,
    filter: str | None = None,  # noqa: A002 - the option's name
    storage_options: Mapping[str, str] | None = None,
    blob_handling: BlobHandling | None = None,
) -> None:
    """Create or replace a temporary view of a version, by default of the version that is newest now.

    `branch` is a branch, by default the main one, and `timestamp` a moment (ISO 8601; without a zone it is UTC): the
    view shows the version of the branch that was newest then, or its `version`. A `tag` names a version by itself.
    `blob_handling` is as in `lance_ops.spark.table`.

    Rows inserted into the view are in the table at once. The view shows them when it is created again. A view with a
    `version`, `tag`, `branch`, `timestamp`, `filter` or `blob_handling` refuses inserts. The storage options are in no
    plan and no log of Spark; the URI and the filter are. The version is opened here, before Spark makes the view. A
    relative path begins in this process's folder.

    Raises `DatasetNotFound`, `VersionNotFound` or `ReferenceNotFound` if the table, the version, the tag or the branch
    does not exist, and `InvalidFilter` for a filter that does not fit the table. Raises `InvalidInput` for arguments
    that name two versions, for a moment that is none and, without showing it, for a URI that holds a secret.
    """
    check_is_running(session)
    if not name:
        raise InvalidInput("a view needs a name")
    if public_uri(uri) != uri:
        raise InvalidInput("a URI with a password, token or signature in it: pass credentials in storage_options")
    path = open_store(uri).uri if is_local(uri) else uri  # Spark's processes have other folders
    moment = timestamp.isoformat() if isinstance(timestamp, datetime) else timestamp
    asked = {
        "path": path,
        "filter": filter,
        "blob_handling": blob_handling,
        "tag": tag,
        "branch": branch,
        "version": version,
        "timestamp": moment,
    }
    options = {key: str(value) for key, value in asked.items() if value is not None}
    snapshot = replace(SourceOptions.parse(options), storage_options=dict(storage_options or {})).open()
    if filter is not None:
        bind_filter(snapshot, filter)  # Spark would report a mistake only when the view is read
    given = ", ".join(f"{quoted_path(key)} {text_literal(value)}" for key, value in options.items())
    source = private_format(session, storage_options)
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {quoted_path(name)} USING {quoted_path(source)} OPTIONS ({given})")

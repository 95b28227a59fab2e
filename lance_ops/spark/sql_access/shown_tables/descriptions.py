"""DESCRIBE of a table's columns, detail and history.

Where Delta has the statement, too, the result has the columns of Delta's.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from lance_ops.maintenance.health import timeline
from lance_ops.spark.sql_access.shown_tables.columns import shown_columns
from lance_ops.spark.sql_access.statement import Statement

__all__ = ["DESCRIBE_STATEMENTS"]

_HISTORY = (
    "version bigint, timestamp timestamp, operation string, operationMetrics map<string, bigint>, "
    "tags array<string>, userMetadata map<string, string>"
)
_DETAIL = (
    "format string, location string, version bigint, lastModified timestamp, numFragments bigint, numFiles bigint, "
    "numRows bigint, sizeInBytes bigint, dataStorageVersion string, properties map<string, string>"
)


def _history(statement: Statement) -> DataFrame | None:
    """DESCRIBE HISTORY t [LIMIT n]: the retained versions, newest first."""
    reader = statement.reader
    table = statement.table()
    if table is None:
        return None
    limit = reader.number("a number of versions") if reader.accept("LIMIT") else None
    reader.end()
    rows = [
        (
            *(each.version, each.timestamp, each.operation),
            {
                "numRows": each.num_rows,
                "numFragments": each.num_fragments,
                "numDeletedRows": each.num_deleted_rows,
                "sizeInBytes": each.size_bytes,
            },
            *(list(each.tags), dict(each.transaction_properties)),
        )
        for each in reversed(timeline(statement.tables.open(table).snapshot, limit))
    ]
    return statement.result(_HISTORY, rows)


def _detail(statement: Statement) -> DataFrame | None:
    """DESCRIBE DETAIL t."""
    table = statement.table()
    if table is None:
        return None
    statement.reader.end()
    opened = statement.tables.open(table)
    fragments = opened.snapshot.fragments
    files = [file for fragment in fragments for file in fragment.files]
    row = (
        *("lance", opened.uri, opened.version, opened.snapshot.manifest.timestamp, len(fragments), len(files)),
        *(
            opened.count_rows(),
            sum(file.file_size_bytes for file in files),
            opened.data_storage_version,
            opened.config(),
        ),
    )
    return statement.result(_DETAIL, [row])


def _columns(statement: Statement) -> DataFrame | None:
    """DESCRIBE [TABLE] [EXTENDED] t: the columns and their types in Spark."""
    statement.reader.accept_any("EXTENDED", "FORMATTED")
    table = statement.table()
    if table is None:
        return None
    statement.reader.end()
    shown = shown_columns(statement.tables.open(table))
    rows = [(field.name, field.dataType.simpleString(), None) for field in shown]
    return statement.result("col_name string, data_type string, comment string", rows)


DESCRIBE_STATEMENTS = (
    (("DESCRIBE", "HISTORY"), _history),
    (("DESC", "HISTORY"), _history),
    (("DESCRIBE", "DETAIL"), _detail),
    (("DESC", "DETAIL"), _detail),
    (("DESCRIBE", "TABLE"), _columns),
    (("DESC", "TABLE"), _columns),
    (("DESCRIBE",), _columns),
    (("DESC",), _columns),
)
"""Which words begin a statement, and what executes it."""

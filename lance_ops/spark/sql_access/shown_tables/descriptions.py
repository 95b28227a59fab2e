"""DESCRIBE of a table's columns, detail and history.

If Delta Lake has the statement, the result has the same columns as there.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from lance_ops.api import LanceDataset
from lance_ops.maintenance.health import timeline
from lance_ops.spark.sql_access.shown_tables.columns import COMMENT, shown_columns
from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.sql_access.table_references import FORMAT

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
    """DESCRIBE HISTORY t [LIMIT n]: the retained versions, newest first. DESCRIBE history is about a table."""
    reader = statement.reader
    table = None if reader.ended else statement.table()
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
    """DESCRIBE DETAIL t. DESCRIBE detail is about a table of that name."""
    table = None if statement.reader.ended else statement.table()
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
    """DESCRIBE [TABLE] [EXTENDED | FORMATTED] t: the columns with their types in Spark, then what the table is."""
    reader = statement.reader
    is_extended = reader.accept_any("EXTENDED", "FORMATTED") is not None
    if is_extended and reader.ended:  # the word is the table's name
        reader.at, is_extended = reader.at - 1, False
    table = None if reader.ended else statement.table()
    if table is None:
        return None
    reader.end()
    opened = statement.tables.open(table)
    shown = shown_columns(opened)
    rows = [(field.name, field.dataType.simpleString(), field.metadata.get(COMMENT)) for field in shown]
    if is_extended:
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [(name, value, "") for name, value in _information(opened).items()]
    return statement.result("col_name string, data_type string, comment string", rows)


def _information(opened: LanceDataset) -> dict[str, str]:
    """Return what Spark tells about a table, under Spark's names where it has them."""
    config = opened.config()
    comment = config.pop(COMMENT, None)
    return {
        "Provider": FORMAT,
        "Location": opened.uri,
        "Version": str(opened.version),
        "Last Modified": str(opened.snapshot.manifest.timestamp),
        "Data Storage Version": opened.data_storage_version,
        **({} if comment is None else {"Comment": comment}),
        "Table Properties": f"[{','.join(f'{key}={value}' for key, value in sorted(config.items()))}]",
    }


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

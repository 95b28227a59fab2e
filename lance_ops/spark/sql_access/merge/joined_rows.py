"""The rows that a merge reads where Spark joins both tables: which columns are joined, and what each clause gives."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source import SourceOptions, visible_schema
from lance_ops.spark.sql_access.expressions import quoted_path
from lance_ops.spark.sql_access.merge.choices import Choice, Choices, ChosenRows, choose_rows
from lance_ops.spark.sql_access.merge.clauses import Clauses
from lance_ops.spark.sql_access.merge.names import MergeNames
from lance_ops.spark.table_query import TableQuery
from lance_ops.spark.translation import check_half_floats, has_nanoseconds

__all__ = ["rows_of_both"]


def rows_of_both(
    names: MergeNames, frame: DataFrame, snapshot: Snapshot, keys: dict[str, str], clauses: Clauses
) -> ChosenRows:
    """Join the source with the columns of a version that the clauses read, and return the rows that take part.

    Raises `UnsupportedFeature` for columns that the merge would change on their way through Spark.
    """
    choices = _choices(names, keys, clauses)
    texts = [text for each in choices for text in (each.condition, *each.values.values()) if text]
    read = {*keys, *(name for text in texts for name in names.columns_of_target(text))}
    _check_read(names.schema, read)
    check_half_floats("a joined MERGE", names.schema, keys)
    paths = [f"`{name}`" if "." in name else name for name in names.schema.names if name in read]
    table = TableQuery(frame.sparkSession, snapshot).select(*paths, ROW_ADDRESS).load()
    visible = visible_schema(SourceOptions.parse({"path": snapshot.uri}), snapshot)
    types = {field.name: field.dataType for field in from_arrow_schema(visible)}
    return choose_rows(frame, names.source, table, names.target, keys, choices, types)


def _choices(names: MergeNames, keys: dict[str, str], clauses: Clauses) -> Choices:
    """Return what each clause gives its rows. An update keeps the columns that only other clauses write."""
    joined_in_full = clauses.unmatched_by_source if clauses.joins_unmatched_by_source else ()
    for clause in joined_in_full:
        names.check_unmatched_by_source(clause)
    joined = (*clauses.matched, *joined_in_full)
    updates = [names.written(clause) for clause in joined if clause.action == "UPDATE"]
    inserts = [names.written(clause) for clause in clauses.inserted]
    names.check_keys(keys, updates, inserts)
    written = dict.fromkeys(name for values in (*updates, *inserts) for name in values if name not in keys)
    own = {name: quoted_path(names.target, name) for name in written}
    kept = {name: path for name, path in own.items() if any(name not in values for values in updates)}
    _check_kept(names.schema, kept)
    of_updated = iter(updates)
    changes = [
        Choice("UPDATE", clause.condition, {**kept, **next(of_updated)})
        if clause.action == "UPDATE"
        else Choice("DELETE", clause.condition, {})  # expressions of another clause may fail on its rows
        for clause in joined
    ]
    matched, unmatched_by_source = changes[: len(clauses.matched)], changes[len(clauses.matched) :]
    if clauses.unmatched_by_source and not joined:
        # Nothing changes these rows, but columns without nulls need a value.
        needed = {name: path for name, path in own.items() if not names.schema.field(name).nullable}
        matched = [Choice("KEEP", None, needed)]
    unmatched_by_target = [
        Choice("INSERT", clause.condition, values) for clause, values in zip(clauses.inserted, inserts, strict=True)
    ]
    return Choices(matched, unmatched_by_target, unmatched_by_source)


def _check_kept(schema: Schema, kept: Iterable[str]) -> None:
    """Raise `UnsupportedFeature` for a kept column whose values would change on their way through Spark."""
    for name in kept:
        field = schema.field(name)
        if has_nanoseconds(field) or any(node.is_blob_v1 or node.is_blob_v2 for node in field.walk()):
            raise UnsupportedFeature(
                f"a clause of MERGE that sets column {name!r} beside an UPDATE that does not: Spark cuts its values"
            )


def _check_read(schema: Schema, read: set[str]) -> None:
    """Raise `UnsupportedFeature` for a column that the join would read otherwise than the merge."""
    if ROW_ADDRESS in schema.names:
        raise UnsupportedFeature(f"a MERGE that joins its source with a table that has a column {ROW_ADDRESS!r}")
    for name in schema.names:
        if name in read and has_nanoseconds(schema.field(name)):
            raise UnsupportedFeature(
                f"a MERGE whose clauses read column {name!r} of the table, or match by it and share their rows: "
                "Spark cuts its nanoseconds"
            )

"""The rows that a merge changes where Spark joins both tables: what is joined, and what each clause gives."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.reading import ROW_ADDRESS
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.spark.sql_access.merge.choices import Choice, Choices, choose_rows
from lance_ops.spark.sql_access.merge.clauses import Clause, Clauses
from lance_ops.spark.sql_access.merge.names import MergeNames
from lance_ops.spark.sql_access.row_changes import visible_types
from lance_ops.spark.table_query import TableQuery
from lance_ops.spark.translation import check_whole_microseconds, has_nanoseconds, quoted_path

__all__ = ["changes_by_join"]


def changes_by_join(
    names: MergeNames, frame: DataFrame, snapshot: Snapshot, on: str, clauses: Clauses, runner: Runner
) -> DataFrame:
    """Join the source with the columns of a version that ON and the clauses read; return the rows to change.

    They are as `choose_rows` returns them. Raises `UnsupportedFeature` for columns that the merge would change on
    their way through Spark; tasks of the runner look for nanoseconds that Spark would cut.
    """
    choices = _choices(names, clauses)
    texts = [text for each in choices for text in (each.condition, *each.values.values()) if text]
    read = {name for text in (on, *texts) for name in names.columns_of_target(text)}
    _check_read(names, snapshot, read, runner)
    paths = [f"`{name}`" if "." in name else name for name in names.schema.names if name in read]
    table = TableQuery(frame.sparkSession, snapshot).select(*paths, ROW_ADDRESS).load()
    return choose_rows(frame, names.source, table, names.target, on, choices, visible_types(snapshot))


def _choices(names: MergeNames, clauses: Clauses) -> Choices:
    """Return what each clause gives its rows. An update keeps the columns that only other clauses write."""
    updates = [clause.values for clause in clauses.updates]
    own = {name: quoted_path(names.target, name) for values in updates for name in values}
    kept = {name: path for name, path in own.items() if any(name not in values for values in updates)}
    _check_kept(names.schema, kept)

    def choice(clause: Clause) -> Choice:
        values = {**kept, **clause.values} if clause.action == "UPDATE" else clause.values
        return Choice(clause.action, clause.condition, values)

    sides = (clauses.matched, clauses.inserted, clauses.unmatched_by_source)
    return Choices(*([choice(clause) for clause in side] for side in sides))


def _check_kept(schema: Schema, kept: Iterable[str]) -> None:
    """Raise `UnsupportedFeature` for a kept column whose values would change on their way through Spark."""
    for name in kept:
        field = schema.field(name)
        if has_nanoseconds(field) or any(node.is_blob_v1 or node.is_blob_v2 for node in field.walk()):
            raise UnsupportedFeature(
                f"a clause of MERGE that sets column {name!r} beside an UPDATE that does not: Spark does not read its "
                "values as they are"
            )


def _check_read(names: MergeNames, snapshot: Snapshot, read: set[str], runner: Runner) -> None:
    """Raise `UnsupportedFeature` for a column that the join would not read as it is."""
    schema = snapshot.schema
    if names.case_rule.find(ROW_ADDRESS, schema.names) is not None:
        raise UnsupportedFeature(f"a MERGE that joins its source with a table that has a column {ROW_ADDRESS!r}")
    check_whole_microseconds("a MERGE that reads column", snapshot, sorted(read), runner)

"""MERGE INTO, executed by the library's merge by key.

    MERGE INTO t [AS a] USING (source | (query)) [AS b [(column, …)]] ON a.key = expression of b [AND …]
    WHEN MATCHED [AND condition] THEN UPDATE SET * | UPDATE SET column = expression, … | DELETE
    WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT * | INSERT (column, …) VALUES (expression, …)
    WHEN NOT MATCHED BY SOURCE [AND condition] THEN UPDATE SET column = expression, … | DELETE

The library's merge gives one source row to the rows that it updates and to those that it inserts. Spark computes that
row from the source alone, if all clauses allow it. Else Spark joins the source with the columns of the table that the
clauses read: they may then read both rows, and there may be several of a kind, of which the first that fits counts.
What cannot be said is refused with its reason, before anything is written.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lance_ops.api import ExecuteResult, LanceDataset, MergeInsertBuilder
from lance_ops.core.errors import RetryableConflict, TooManyConcurrentWriters, UnsupportedFeature
from lance_ops.core.predicate import In, Predicate
from lance_ops.core.predicate.binding import Name, resolve
from lance_ops.core.predicate.tree import TRUE, any_of
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_ADDRESS, bind_filter, schema_with_row_columns
from lance_ops.snapshot import Snapshot
from lance_ops.spark.sql_access.expressions import quoted_path
from lance_ops.spark.sql_access.merge.choices import unused_name
from lance_ops.spark.sql_access.merge.clauses import Clause, Clauses, read_clauses
from lance_ops.spark.sql_access.merge.joined_rows import rows_of_both
from lance_ops.spark.sql_access.merge.names import MergeNames
from lance_ops.spark.sql_access.merge.source_rows import SourceRows, rows_of_source
from lance_ops.spark.sql_access.queries import lance_query, run_query
from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.sql_access.table_references import read_version_clause
from lance_ops.spark.translation import check_keys_are_kept
from lance_ops.writing import retry_conflicts

__all__ = ["MERGE_STATEMENTS", "change_by_keys"]

_RETRIES = 10
_RETRY_TIMEOUT = timedelta(seconds=30)
"""No attempt begins later than this after the first conflict: an attempt that joins may itself take longer."""

_CHANGED = "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, num_inserted_rows bigint"


def _merge(statement: Statement) -> DataFrame | None:
    """MERGE INTO …; see the module."""
    reader = statement.reader
    evolves = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    if not reader.accept("INTO"):
        return None
    table = statement.table()
    if table is None:
        return lance_query(reader.text, statement.tables)
    if evolves:
        raise UnsupportedFeature("MERGE WITH SCHEMA EVOLUTION (add the columns by ALTER TABLE … ADD COLUMNS first)")
    name = reader.words[reader.at - 1].value
    target = statement.alias("USING") or name
    reader.expect("USING")
    query, source = _source(statement)
    reader.expect("ON")
    condition = reader.until("WHEN", what="a condition")
    clauses = read_clauses(reader, target, name)
    opened = statement.tables.open(table)
    frame = run_query(query, statement.tables)
    merge = _Merge(statement, target, frame, source, condition, clauses)
    done = merge.with_conditions_of_on(opened.snapshot).execute(opened)
    counts = (done["num_updated_rows"], done["num_deleted_rows"], done["num_inserted_rows"])
    return statement.result(_CHANGED, [(sum(counts), *counts)])


def change_by_keys(
    statement: Statement, opened: LanceDataset, target: str, column: str, found: DataFrame, clause: Clause
) -> ExecuteResult:
    """Update or delete, as the clause says, rows whose column has one of the values that a query found.

    The clause's condition and values are Spark's expressions over the table, which the statement calls `target`. The
    merge takes each key once, and a null is no key. Raises `UnsupportedFeature` for a new value of the key column, and
    what a MERGE raises.
    """
    if column in (clause.values or {}):
        raise UnsupportedFeature(
            f"UPDATE … SET {column} = … WHERE {column} IN (SELECT …), which changes the column that finds the rows "
            "(list the values in IN (…), or find the rows by another column)"
        )
    key, source = unused_name([*opened.snapshot.schema.names, ROW_ADDRESS]), f"keys of {target}"
    keys = found.toDF(key).dropna().distinct()
    on = f"{quoted_path(target, column)} = {quoted_path(source, key)}"
    return _Merge(statement, target, keys, source, on, Clauses((clause,), (), ())).execute(opened)


def _source(statement: Statement) -> tuple[str, str]:
    """Read the source; return its query and its name in the statement."""
    reader = statement.reader
    if reader.accept("("):
        query = reader.until(what="a query")
        reader.expect(")")
        alias = statement.alias("ON")
        if alias is None:
            raise reader.error("an alias of the source")
        begin = reader.at
        if reader.accept("("):
            reader.until(what="names of columns")
            reader.expect(")")
            query = f"SELECT * FROM ({query}) AS {quoted_path(alias)} {reader.between(begin, reader.at)}"
        return query, alias
    begin = reader.at
    name = reader.path("the source")[-1]
    read_version_clause(reader)
    query = f"SELECT * FROM {reader.between(begin, reader.at)}"
    return query, statement.alias("ON") or name


@dataclass(frozen=True)
class _Merge:
    """What a statement merges; `target` and `source` are the names of both tables in it."""

    statement: Statement
    target: str
    frame: DataFrame
    source: str
    on: str
    clauses: Clauses

    def execute(self, opened: LanceDataset) -> ExecuteResult:
        """Merge into the opened version, or a newer one; return the counts of changed rows."""
        names = self._names(opened.snapshot)
        rules = self.statement.tables.rules
        found = rows_of_source(names, self.frame, names.keys(self.on), self.clauses, rules)
        return self._merge_joined(opened.snapshot) if found is None else self._merge_source(opened, found)

    def with_conditions_of_on(self, snapshot: Snapshot) -> _Merge:
        """Return a merge whose matched clauses also require ON, if ON has conditions beside its keys.

        Raises `UnsupportedFeature` if there are clauses of unmatched rows, too: the library's merge matches by key
        alone.
        """
        names = self._names(snapshot)
        names.keys(self.on)
        others = names.conditions_beside_keys(self.on)
        if not others:
            return self
        if self.clauses.inserted or self.clauses.unmatched_by_source:
            raise UnsupportedFeature(
                f"{others[0]} in ON of MERGE beside WHEN NOT MATCHED: ON joins by {self.target}.key = an expression of "
                f"{self.source} (filter the source, or put the condition into a clause)"
            )
        return replace(self, clauses=self.clauses.requiring(self.on))

    def _merge_source(self, opened: LanceDataset, found: SourceRows) -> ExecuteResult:
        keys = [found.rows.schema[name] for name in self._names(opened.snapshot).keys(self.on)]
        check_keys_are_kept("MERGE", StructType(keys), opened.snapshot.schema)
        merge = self._with_inserts(opened)
        if self.clauses.all_matched_delete:
            merge = merge.when_matched_delete()
        elif self.clauses.matched:
            merge = merge.when_matched_update_all(found.update_condition)
        conditions = self._unmatched(opened.snapshot)
        if conditions:
            merge = merge.when_not_matched_by_source_delete(any_of(*conditions))
        return merge.execute(self.statement.rows_for(found.rows, opened), runner=self.statement.runner)

    def _merge_joined(self, opened: Snapshot) -> ExecuteResult:
        """Join the source with the opened version and merge; after a conflict do both again on the newest version."""

        def attempt(current: Snapshot) -> ExecuteResult:
            names = self._names(current)
            with rows_of_both(names, self.frame, current, names.keys(self.on), self.clauses) as chosen:
                chosen.check_keys()
                merge = self._joined_merge(LanceDataset.of(current), chosen.deleted_addresses()).conflict_retries(0)
                try:
                    return merge.execute(
                        self.statement.rows_for(chosen.rows, LanceDataset.of(current)), runner=self.statement.runner
                    )
                except TooManyConcurrentWriters as lost:
                    raise RetryableConflict(str(lost.__cause__)) from lost

        return retry_conflicts(opened, attempt, _RETRIES, _RETRY_TIMEOUT, from_first_conflict=True)

    def _joined_merge(self, opened: LanceDataset, deleted: pa.Array) -> MergeInsertBuilder:
        """Return the merge of chosen rows, which also deletes the rows of the table at the addresses `deleted`.

        The source rows of these are left out, so the merge finds them unmatched.
        """
        merge = self._with_inserts(opened)
        if self.clauses.matched or self.clauses.updates_unmatched_by_source:
            merge = merge.when_matched_update_all()
        conditions = [_is_at(opened.snapshot, deleted)] if len(deleted) else []
        if not self.clauses.joins_unmatched_by_source:
            conditions += self._unmatched(opened.snapshot)
        return merge.when_not_matched_by_source_delete(any_of(*conditions)) if conditions else merge

    def _with_inserts(self, opened: LanceDataset) -> MergeInsertBuilder:
        merge = opened.merge_insert(list(self._names(opened.snapshot).keys(self.on)))
        return merge.when_not_matched_insert_all() if self.clauses.inserted else merge

    def _unmatched(self, snapshot: Snapshot) -> list[Predicate]:
        """Return which rows of the table to delete that no source row matches: those of any of these conditions."""
        writer = self.statement.writer(LanceDataset.of(snapshot), self.target)
        return [
            TRUE if clause.condition is None else bind_filter(snapshot, writer.write(clause.condition))
            for clause in self.clauses.unmatched_by_source
        ]

    def _names(self, snapshot: Snapshot) -> MergeNames:
        case_rule = self.statement.case_rule
        return MergeNames(self.target, snapshot.schema, self.source, tuple(self.frame.columns), case_rule)


def _is_at(snapshot: Snapshot, addresses: pa.Array) -> Predicate:
    column = resolve(schema_with_row_columns(snapshot), [Name(ROW_ADDRESS)])
    return In(column, addresses)


MERGE_STATEMENTS = ((("MERGE",), _merge),)
"""Which words begin a statement, and what executes it."""

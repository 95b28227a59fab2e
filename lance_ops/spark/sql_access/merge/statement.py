"""MERGE INTO: read the statement, and change the rows by key or by address.

    MERGE INTO t [AS a] USING (source | (query)) [AS b [(column, …)]] ON a.key = expression of b [AND …]
    WHEN MATCHED [AND condition] THEN UPDATE SET * | UPDATE SET column = expression, … | DELETE
    WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT * | INSERT (column, …) VALUES (expression, …)
    WHEN NOT MATCHED BY SOURCE [AND condition] THEN UPDATE SET column = expression, … | DELETE

If ON compares keys, and the clauses need one row of the source alone for what they update and insert, the library's
merge by key reads these rows. Else Spark joins the source with the columns of the table that ON and the clauses read:
they may then read both rows, and there may be several of a kind, of which the first that fits counts. What cannot be
said is refused with its reason, before anything is written. Parameters `:name` may stand anywhere, and so may
subqueries that have one value and read neither row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lance_ops.api import LanceDataset
from lance_ops.api.namespaces import TableDescription
from lance_ops.changing import RowChosenTwice
from lance_ops.changing.merge_insert import MergeCounts
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import Predicate
from lance_ops.core.predicate.tree import TRUE, any_of
from lance_ops.core.records import dataclass
from lance_ops.reading import ScanRequest, take_addresses
from lance_ops.snapshot import Snapshot
from lance_ops.spark.sql_access.merge.clauses import Clauses, read_clauses
from lance_ops.spark.sql_access.merge.inlined_values import InlinedValues
from lance_ops.spark.sql_access.merge.joined_rows import changes_by_join
from lance_ops.spark.sql_access.merge.names import MergeNames
from lance_ops.spark.sql_access.merge.source_rows import source_rows_to_merge
from lance_ops.spark.sql_access.queries import lance_query, run_query
from lance_ops.spark.sql_access.row_changes import change_rows, plain_types
from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.sql_access.table_references import VersionClause, read_version_clause
from lance_ops.spark.translation import (
    check_whole_microseconds,
    compares_keys_alike,
    has_nanoseconds,
    quoted_path,
    rows_with_possible_keys,
)

__all__ = ["MERGE_STATEMENTS"]

_CHANGED = "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, num_inserted_rows bigint"


def _merge(statement: Statement) -> DataFrame | None:
    """MERGE INTO …; see the module."""
    reader = statement.reader
    evolves = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    if not reader.accept("INTO"):
        return None
    table = statement.named_table("USING")
    if table is None:
        return lance_query(reader.text, statement.tables)
    if evolves:
        raise UnsupportedFeature("MERGE WITH SCHEMA EVOLUTION (add the columns by ALTER TABLE … ADD COLUMNS first)")
    reader.expect("USING")
    source = _source(statement)
    reader.expect("ON")
    on = reader.until("WHEN", what="a condition")
    clauses = read_clauses(reader, table.qualifier, table.name)

    def attempt(current: Snapshot) -> MergeCounts:
        tables = statement.tables.reading(current)
        constants = InlinedValues(tables)
        frame = run_query(source.query, tables.for_query_to_write())
        names = MergeNames(table.qualifier, current.schema, source.name, tuple(frame.columns), statement.case_rule)
        resolved = clauses.with_texts(constants.written_out).mapped(names.resolved)
        merge = _Merge(statement, names, frame, names.qualified(constants.written_out(on)), resolved)
        if source.table is not None:
            merge.check_source(tables.open(source.table, source.clause).snapshot)
        return merge.execute(current)

    done = statement.retried(statement.tables.open(table.description), attempt)
    counts = (done.updated, done.deleted, done.inserted)
    return statement.result(_CHANGED, [(sum(counts), *counts)])


@dataclass(frozen=True)
class _Source:
    """The rows that a statement merges: a query, and their name in the statement.

    If the query reads a Lance table as it is, `table` is this table, in the version of `clause`.
    """

    query: str
    name: str
    table: TableDescription | None = None
    clause: VersionClause | None = None


def _source(statement: Statement) -> _Source:
    """Read the source."""
    reader = statement.reader
    name, table, clause = None, None, None
    if reader.accept("("):
        source = f"({reader.until(what='a query')})"
        reader.expect(")")
    else:
        begin = reader.at
        path = reader.path("the source")
        name, table, clause = path[-1], statement.tables.find(path), read_version_clause(reader)
        source = reader.between(begin, reader.at)
    alias = statement.alias("ON")
    if alias is None and name is None:
        raise reader.error("an alias of the source")
    begin, columns = reader.at, ""
    if alias is not None and reader.accept("("):
        reader.until(what="names of columns")
        reader.expect(")")
        columns = reader.between(begin, reader.at)
    called = alias or name or ""
    return _Source(f"SELECT * FROM {source} AS {quoted_path(called)} {columns}", called, table, clause)


@dataclass(frozen=True)
class _Merge:
    """What a statement merges into the version that `names` knows; ON and the clauses are resolved."""

    statement: Statement
    names: MergeNames
    frame: DataFrame
    on: str
    clauses: Clauses

    def check_source(self, snapshot: Snapshot) -> None:
        """Raise `UnsupportedFeature` for nanoseconds of the source that Spark cuts.

        They count where they are compared, and where they become values of columns of nanoseconds.
        """
        texts = [self.on]
        for clause in self.clauses:
            fine = (text for name, text in clause.values.items() if has_nanoseconds(self.names.schema.field(name)))
            texts += [*fine, *([] if clause.condition is None else [clause.condition])]
        read = {name for text in texts for name in self.names.columns_of_source(text)}
        stored = dict(zip(self.names.source_columns, snapshot.schema.names, strict=True))
        paths = [name for column, name in stored.items() if column in read]
        check_whole_microseconds("a MERGE that reads its source's column", snapshot, paths, self.statement.runner)

    def execute(self, current: Snapshot) -> MergeCounts:
        """Merge into the version; return the numbers of changed rows."""
        found = source_rows_to_merge(self.names, self.frame, self.on, self.clauses, plain_types(current))
        unmatched = self._unmatched_by_source(current)
        if found is None or unmatched is None or not self._compares_keys_alike(current, found):
            return self._merge_joined(current)
        return self._merge_source(LanceDataset.of(current), found, unmatched)

    def _compares_keys_alike(self, snapshot: Snapshot, rows: DataFrame) -> bool:
        keys = StructType([rows.schema[key] for key in self._keys])
        return compares_keys_alike(keys, snapshot.schema)

    def _merge_source(self, opened: LanceDataset, rows: DataFrame, unmatched: list[Predicate]) -> MergeCounts:
        """Merge by key; also delete the rows of the table that match no source row and meet one of the conditions."""
        keys = self._keys
        merge = opened.merge_insert(keys).conflict_retries(0)
        if self.clauses.all_matched_delete:
            merge = merge.when_matched_delete()
        elif self.clauses.matched:
            merge = merge.when_matched_update_all()
        if self.clauses.inserted:
            merge = merge.when_not_matched_insert_all()
        else:
            rows = rows_with_possible_keys(rows, keys, opened.snapshot.schema)
        if unmatched:
            merge = merge.when_not_matched_by_source_delete(any_of(*unmatched))
        done = merge.execute(self.statement.rows_for(rows, opened, keys), runner=self.statement.runner)
        return MergeCounts(done["num_inserted_rows"], done["num_updated_rows"], done["num_deleted_rows"])

    def _merge_joined(self, current: Snapshot) -> MergeCounts:
        """Join the source with the version and change the rows of the pairs."""
        rows = changes_by_join(self.names, self.frame, current, self.on, self.clauses, self.statement.runner)
        updated = dict.fromkeys(name for clause in self.clauses.updates for name in clause.values)
        try:
            return change_rows(self.statement, current, rows, updated, "merge into", on=self._keys)
        except RowChosenTwice as error:
            raise InvalidInput(
                "ambiguous merge: several source rows match one row of the table, and one of them updates it: "
                f"{_shown(current, error.address, self.names.columns_of_target(self.on))}; leave one source row for it"
            ) from error

    def _unmatched_by_source(self, snapshot: Snapshot) -> list[Predicate] | None:
        """Return which rows of the table to delete that no source row matches: those of any of these conditions.

        Returns None for a condition that Spark must evaluate, and for matched clauses with a condition: the library's
        merge would delete a matched row for which the condition is false.
        """
        clauses = self.clauses.unmatched_by_source
        if clauses and any(clause.condition is not None for clause in self.clauses.matched):
            return None
        found = [
            TRUE
            if each.condition is None
            else self.statement.predicate(snapshot.schema, each.condition, self.names.target)
            for each in clauses
        ]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    @property
    def _keys(self) -> list[str]:
        return list(self.names.keys_of_on(self.on)[0])


def _shown(snapshot: Snapshot, address: int, columns: Sequence[str]) -> str:
    """Return the values that a row has in these columns."""
    request = ScanRequest(snapshot.schema.project(list(dict.fromkeys(columns))), with_row_address=not columns)
    row = take_addresses(snapshot, np.array([address], np.uint64), request).to_pylist()[0]
    return ", ".join(f"{name} = {value!r}" for name, value in row.items())


MERGE_STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Statement], DataFrame | None]], ...] = ((("MERGE",), _merge),)
"""Which words begin a statement, and what executes it."""

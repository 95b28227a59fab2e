"""MERGE INTO, executed by the library's merge by key.

    MERGE INTO t [AS a] USING (source | (query)) [AS b] ON a.key = b.key [AND …]
    WHEN MATCHED [AND condition] THEN UPDATE SET * | UPDATE SET column = expression, … | DELETE
    WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT * | INSERT (column, …) VALUES (expression, …)
    WHEN NOT MATCHED BY SOURCE [AND condition] THEN DELETE

The library's merge gives one source row to the rows that it updates and to those that it inserts. Spark computes that
row from the source alone, if all clauses allow it. Else Spark joins the source with the columns of the table that the
clauses read: they may then read both rows, and there may be several of a kind, of which the first that fits counts.
What cannot be said is refused with its reason, before anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from sqlglot import exp

from lance_ops.api import ExecuteResult, LanceDataset, MergeInsertBuilder
from lance_ops.core.errors import InvalidInput, TooManyConcurrentWriters, UnsupportedFeature
from lance_ops.core.predicate import In, Predicate
from lance_ops.core.predicate.binding import Name, resolve
from lance_ops.core.predicate.binding.build import any_of
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_ADDRESS, bind_filter, schema_with_row_columns
from lance_ops.spark.data_source import SourceOptions, visible_schema
from lance_ops.spark.merge_choices import Choice, Choices, ChosenRows, choose_rows
from lance_ops.spark.sql_access.merge_clauses import Clause, Clauses, read_clauses
from lance_ops.spark.sql_access.queries import lance_query, run_query
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.sql_access.table_references import read_version_clause
from lance_ops.spark.sql_access.written_expressions import ExpressionWriter, Side, parse_expression, quoted_path
from lance_ops.spark.table_query import TableQuery
from lance_ops.spark.translation import CaseRule

__all__ = ["MERGE_STATEMENTS"]

_ATTEMPTS = 11
_CHANGED = "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, num_inserted_rows bigint"


class _ReadsBothRows(Exception):
    """A clause whose rows the source alone does not give."""


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
    clauses = read_clauses(reader)
    opened = statement.tables.open(table)
    frame = run_query(query, statement.tables)
    merge = _Merge(opened, frame, target, source, statement.case_rule, statement.tables.in_utc)
    return merge.execute(statement, condition, clauses)


def _source(statement: Statement) -> tuple[str, str]:
    """Read the source; return its query and its name in the statement."""
    reader = statement.reader
    if reader.accept("("):
        query = reader.until(what="a query")
        reader.expect(")")
        alias = statement.alias("ON")
        if alias is None:
            raise reader.error("an alias of the source")
        return query, alias
    begin = reader.at
    name = reader.path("the source")[-1]
    read_version_clause(reader)
    query = f"SELECT * FROM {reader.between(begin, reader.at)}"
    return query, statement.alias("ON") or name


@dataclass(frozen=True)
class _Merge:
    """A merge of a source into an opened table; `target` and `source` are their names in the statement."""

    opened: LanceDataset
    frame: DataFrame
    target: str
    source: str
    case_rule: CaseRule
    in_utc: bool

    def execute(self, statement: Statement, on: str, clauses: Clauses) -> DataFrame:
        """Shape the source, build the merge and execute it."""
        keys = self._keys(on)
        try:
            rows, condition = self._rows_of_source(keys, clauses)
        except _ReadsBothRows:
            done = self._merge_joined(statement, keys, clauses)
        else:
            merge = self._builder(keys, clauses, condition)
            done = merge.execute(statement.rows_for(rows), runner=statement.runner)
        counts = (done["num_updated_rows"], done["num_deleted_rows"], done["num_inserted_rows"])
        return statement.result(_CHANGED, [(sum(counts), *counts)])

    def _merge_joined(self, statement: Statement, keys: dict[str, str], clauses: Clauses) -> ExecuteResult:
        """Join the source with the opened version and merge; after a conflict do both again on the newest version."""
        for attempts_left in reversed(range(_ATTEMPTS)):
            with self._rows_of_both(keys, clauses) as chosen:
                chosen.check_keys()
                merge = self._builder(keys, clauses, None, chosen.deleted_addresses()).conflict_retries(0)
                try:
                    return merge.execute(statement.rows_for(chosen.rows), runner=statement.runner)
                except TooManyConcurrentWriters:
                    if not attempts_left:
                        raise
            self.opened.checkout_latest()
        raise AssertionError("the loop returns or raises")

    def _builder(
        self, keys: dict[str, str], clauses: Clauses, condition: str | None, deleted: pa.Array | None = None
    ) -> MergeInsertBuilder:
        """Return the merge of the source's rows, or with `deleted` that of chosen rows.

        It then also deletes the rows of the table at the addresses `deleted`. Their source rows are left out, so the
        merge finds these rows unmatched.
        """
        builder = self.opened.merge_insert(list(keys))
        if deleted is None and clauses.deletes:
            builder = builder.when_matched_delete()
        elif clauses.matched:
            builder = builder.when_matched_update_all(condition)
        if clauses.inserted:
            builder = builder.when_not_matched_insert_all()
        conditions = [] if deleted is None or not len(deleted) else [self._is_at(deleted)]
        if clauses.by_source is not None:
            if clauses.by_source.condition is None:
                return builder.when_not_matched_by_source_delete()  # the rows at the addresses, too
            conditions.append(bind_filter(self.opened.snapshot, self._unmatched(clauses.by_source.condition)))
        return builder.when_not_matched_by_source_delete(any_of(*conditions)) if conditions else builder

    def _is_at(self, addresses: pa.Array) -> Predicate:
        column = resolve(schema_with_row_columns(self.opened.snapshot), [Name(ROW_ADDRESS)])
        return In(column, addresses)

    # -- rows of the source ---------------------------------------------------------------------------------------

    def _rows_of_source(self, keys: dict[str, str], clauses: Clauses) -> tuple[DataFrame, str | None]:
        """Return the rows that the merge reads, and the condition of its update; raise `_ReadsBothRows`."""
        if len(clauses.matched) > 1 or len(clauses.inserted) > 1:
            raise _ReadsBothRows
        matched, inserted = next(iter(clauses.matched), None), next(iter(clauses.inserted), None)
        values = self._values(keys, matched, inserted)
        matching, condition = self._conditions(matched, inserted, clauses.by_source, values)
        rows = self.frame.alias(self.source)
        if condition is not None:
            rows = rows.where(condition)
        return rows.select(*(expr(text).alias(name) for name, text in values.items())), matching

    def _rows_of_both(self, keys: dict[str, str], clauses: Clauses) -> ChosenRows:
        """Return the rows that the merge reads; the columns of the table that the clauses read are joined to them."""
        if clauses.by_source is not None and clauses.matched and clauses.matched[-1].condition is not None:
            raise UnsupportedFeature(f"{clauses.by_source} beside clauses of matched rows that all have a condition")
        updates = [self._written(clause) for clause in clauses.matched if clause.action == "UPDATE"]
        inserts = [self._written(clause) for clause in clauses.inserted]
        self._check_keys(keys, updates, inserts)
        schema = self.opened.snapshot.schema
        names = dict.fromkeys(name for values in (*updates, *inserts) for name in values if name not in keys)
        kept = {name: quoted_path(self.target, name) for name in names if any(name not in values for values in updates)}
        for name in kept:
            self._check_kept(name)
        # Deleted rows get no values: the expressions of another clause may fail on them.
        of_updated = iter(updates)
        matched = [
            Choice("UPDATE", clause.condition, {**kept, **next(of_updated)})
            if clause.action == "UPDATE"
            else Choice("DELETE", clause.condition, {})
            for clause in clauses.matched
        ]
        if clauses.by_source is not None and not matched:
            # Nothing changes these rows, but columns without nulls need a value.
            own = {name: quoted_path(self.target, name) for name in names if not schema.field(name).nullable}
            matched = [Choice("KEEP", None, own)]
        unmatched = [
            Choice("INSERT", clause.condition, values) for clause, values in zip(clauses.inserted, inserts, strict=True)
        ]
        choices = Choices(matched, unmatched)
        texts = [text for each in choices for text in (each.condition, *each.values.values()) if text]
        read = {*keys, *(name for text in texts for side, name in self._columns_of(text) if side == "target")}
        self._check_read(read)
        paths = [f"`{name}`" if "." in name else name for name in schema.names if name in read]
        session = self.frame.sparkSession
        table = TableQuery(session, self.opened.snapshot).select(*paths, ROW_ADDRESS).load()
        visible = visible_schema(SourceOptions.parse({"path": self.opened.uri}), self.opened.snapshot)
        types = {field.name: field.dataType for field in from_arrow_schema(visible)}
        return choose_rows(self.frame.alias(self.source), table, self.target, keys, choices, types)

    # -- columns --------------------------------------------------------------------------------------------------

    def _keys(self, on: str) -> dict[str, str]:
        """Return the source's expression of each key column; the condition must be equalities of the two sides."""
        tree = parse_expression(on)
        keys: dict[str, str] = {}
        for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
            part = part.unnest()
            sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
            names = [self._side_of(side) for side in sides if isinstance(side, exp.Column)]
            if sorted(side for side, _ in names) != ["source", "target"]:
                raise UnsupportedFeature(
                    f"{part.sql('spark')} in ON of MERGE, which joins columns by {self.target}.key = {self.source}.key"
                )
            by_side = dict(names)
            keys[by_side["target"]] = quoted_path(self.source, by_side["source"])
        return keys

    def _side_of(self, column: exp.Column) -> tuple[str, str]:
        """Return which table a column is of, and its name there; raise `InvalidInput` if that is in doubt."""
        parts = name_parts(column)
        places = {
            "target": (self.target, self.opened.snapshot.schema.names),
            "source": (self.source, self.frame.columns),
        }
        found = [
            (side, stored)
            for side, (alias, names) in places.items()
            if (len(parts) == 1 or parts[-2].lower() == alias.lower())
            and (stored := self.case_rule.find(parts[-1], names)) is not None
        ]
        if len(found) != 1:
            what = "is in both tables: name one" if found else "is in neither table"
            raise InvalidInput(f"SQL on a Lance table: column {column.sql('spark')} of MERGE {what}")
        return found[0]

    def _values(self, keys: dict[str, str], matched: Clause | None, inserted: Clause | None) -> dict[str, str]:
        """Return the source's expression of each column that the merge writes, keys first."""
        updates = self._written(matched) if matched is not None and matched.action == "UPDATE" else None
        inserts = None if inserted is None else self._written(inserted)
        self._check_keys(keys, [] if updates is None else [updates], [] if inserts is None else [inserts])
        for text in (*(updates or {}).values(), *(inserts or {}).values()):
            if not self._is_of_source(text):
                raise _ReadsBothRows
        if updates is not None and inserts is not None:
            for name in {**updates, **inserts}:
                one, other = (values.get(name, keys.get(name)) for values in (updates, inserts))
                if one is None or other is None or not _is_same(one, other, self.source):
                    raise _ReadsBothRows
        return {**keys, **{name: text for name, text in (updates or inserts or {}).items() if name not in keys}}

    def _written(self, clause: Clause) -> dict[str, str]:
        """Return the columns that a clause writes, in the table's spelling, and their expressions over the source."""
        names = self.opened.snapshot.schema.names
        if clause.values is None:
            found = {name: self.case_rule.find(name, self.frame.columns) for name in names}
            missing = [name for name, column in found.items() if column is None]
            if missing:
                raise InvalidInput(
                    f"SQL on a Lance table: the source of MERGE has no column {', '.join(missing)}, which * needs: "
                    "name the columns"
                )
            return {name: quoted_path(self.source, str(column)) for name, column in found.items()}
        written = {}
        for name, text in clause.values.items():
            stored = self.case_rule.find(name, names)
            if stored is None:
                raise InvalidInput(f"SQL on a Lance table: no column {name!r}: there are {', '.join(names)}")
            self._columns_of(text)
            written[stored] = text
        return written

    def _check_keys(
        self, keys: dict[str, str], updates: Sequence[dict[str, str]], inserts: Sequence[dict[str, str]]
    ) -> None:
        """Raise `UnsupportedFeature` for a clause that gives a row another key than the source's."""
        for name, key in keys.items():
            for values in inserts:
                if name not in values:
                    raise UnsupportedFeature(f"INSERT of MERGE without the key {name!r}")
                if not _is_same(values[name], key, self.source):
                    raise UnsupportedFeature(f"INSERT of MERGE gives key {name!r} another value than the source's key")
            for values in updates:
                if name in values and not _is_same(values[name], key, self.source):
                    raise UnsupportedFeature(f"UPDATE of MERGE changes the key {name!r}")

    def _check_kept(self, name: str) -> None:
        """Raise `UnsupportedFeature` for a column whose values would change on their way through Spark."""
        field = self.opened.snapshot.schema.field(name)
        if any(node.is_blob_v1 or node.is_blob_v2 or _has_nanoseconds(node.arrow_type) for node in field.walk()):
            raise UnsupportedFeature(
                f"a clause of MERGE that sets column {name!r} beside an UPDATE that does not: Spark cuts its values"
            )

    def _check_read(self, names: set[str]) -> None:
        """Raise `UnsupportedFeature` for a column that the join would read otherwise than the merge."""
        schema = self.opened.snapshot.schema
        if ROW_ADDRESS in schema.names:
            raise UnsupportedFeature(f"a MERGE that joins its source with a table that has a column {ROW_ADDRESS!r}")
        for name in schema.names:
            if name in names and any(_has_nanoseconds(node.arrow_type) for node in schema.field(name).walk()):
                raise UnsupportedFeature(
                    f"a MERGE whose clauses read column {name!r} of the table, or match by it and share their rows: "
                    "Spark cuts its nanoseconds"
                )

    def _is_of_source(self, text: str) -> bool:
        return all(side == "source" for side, _ in self._columns_of(text))

    def _columns_of(self, text: str) -> list[tuple[str, str]]:
        """Return the side and the name of each column in an expression; raise `UnsupportedFeature` for a subquery."""
        tree = parse_expression(text)
        if tree.find(exp.Query) is not None:
            raise UnsupportedFeature(f"{text} in MERGE, a subquery: join it to the source")
        return [self._side_of(column) for column in tree.find_all(exp.Column)]

    # -- conditions -----------------------------------------------------------------------------------------------

    def _conditions(
        self, matched: Clause | None, inserted: Clause | None, by_source: Clause | None, values: dict[str, str]
    ) -> tuple[str | None, str | None]:
        """Return the condition of the library's update, and the one that Spark filters the source by.

        The source may be filtered only if a row that the filter drops takes no part at all: neither in the other
        clause, nor by being the match of a row that would else be deleted as unmatched.
        """
        present = [clause for clause in (matched, inserted) if clause is not None]
        conditions = {clause.condition for clause in present}
        if conditions <= {None}:
            return None, None
        if len(conditions) == 1 and by_source is None:
            condition = next(iter(conditions))
            assert condition is not None
            if self._is_of_source(condition):
                return None, condition
        if inserted is not None and inserted.condition is not None:
            raise _ReadsBothRows
        assert matched is not None
        assert matched.condition is not None
        if matched.action == "DELETE":
            raise _ReadsBothRows
        try:
            return self._update_condition(matched.condition, values), None
        except (InvalidInput, UnsupportedFeature):
            raise _ReadsBothRows from None

    def _update_condition(self, condition: str, values: dict[str, str]) -> str:
        """Write a condition on the rows of both sides; of the source it sees the columns that are written."""
        given = to_arrow_schema(self.frame.schema, timezone="UTC")
        seen = [
            given.field(column).with_name(name)
            for name, text in values.items()
            if (column := self._bare_column(text)) is not None and column == name
        ]
        sides = {
            self.target: Side(self.opened.snapshot.schema.to_arrow_storage(), "target"),
            self.source: Side(pa.schema(seen), "source"),
        }
        return ExpressionWriter(sides, self.case_rule, self.in_utc).write(condition)

    def _bare_column(self, text: str) -> str | None:
        tree = parse_expression(text)
        return self._side_of(tree)[1] if isinstance(tree, exp.Column) else None

    def _unmatched(self, condition: str) -> str:
        side = Side(self.opened.snapshot.schema.to_arrow_storage())
        return ExpressionWriter({self.target: side}, self.case_rule, self.in_utc).write(condition)


def _has_nanoseconds(arrow_type: pa.DataType) -> bool:
    return bool((pa.types.is_timestamp(arrow_type) or pa.types.is_duration(arrow_type)) and arrow_type.unit == "ns")


def _is_same(one: str, other: str, source: str) -> bool:
    """Return whether two expressions over the source are written alike, but for quotes and the source's name."""
    return _plain(one, source) == _plain(other, source)


def _plain(text: str, source: str) -> str:
    tree = parse_expression(text)
    columns: Sequence[exp.Column] = list(tree.find_all(exp.Column))
    if isinstance(tree, exp.Column):
        return ".".join(part.lower() for part in name_parts(tree) if part.lower() != source.lower())
    for column in columns:
        column.set("table", None)
    return tree.sql("spark", identify=True).lower()


MERGE_STATEMENTS = ((("MERGE",), _merge),)
"""Which words begin a statement, and what executes it."""

"""MERGE INTO, executed by the library's merge by key.

    MERGE INTO t [AS a] USING (source | (query)) [AS b] ON a.key = b.key [AND …]
    WHEN MATCHED [AND condition] THEN UPDATE SET * | UPDATE SET column = expression, … | DELETE
    WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT * | INSERT (column, …) VALUES (expression, …)
    WHEN NOT MATCHED BY SOURCE [AND condition] THEN DELETE

The library's merge gives one source row to the rows that it updates and to those that it inserts. Spark computes that
row from the source, so values that read the table's old row cannot be said. Neither can several clauses of one kind.
Each such statement is refused with its reason, before anything is written.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.pandas.types import to_arrow_schema
from sqlglot import exp

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.queries import lance_query, run_query
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.sql_access.table_references import read_version_clause
from lance_ops.spark.sql_access.words import Reader
from lance_ops.spark.sql_access.written_expressions import ExpressionWriter, Side, parse_expression, quoted_path
from lance_ops.spark.translation import CaseRule

__all__ = ["MERGE_STATEMENTS"]

_CHANGED = "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, num_inserted_rows bigint"


@dataclass(frozen=True)
class _Clause:
    """One WHEN: its kind (`matched`, `not matched`, `by source`), its condition and its action.

    `values` are the columns and expressions of UPDATE and INSERT; None stands for `*`.
    """

    kind: str
    condition: str | None
    action: str
    values: dict[str, str] | None = None

    def __str__(self) -> str:
        when = {"matched": "MATCHED", "not matched": "NOT MATCHED", "by source": "NOT MATCHED BY SOURCE"}[self.kind]
        return f"WHEN {when}{'' if self.condition is None else f' AND {self.condition}'} THEN {self.action}"


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
        raise UnsupportedFeature("MERGE WITH SCHEMA EVOLUTION: add the columns by ALTER TABLE … ADD COLUMNS first")
    name = reader.words[reader.at - 1].value
    target = statement.alias("USING") or name
    reader.expect("USING")
    query, source = _source(statement)
    reader.expect("ON")
    condition = reader.until("WHEN", what="a condition")
    clauses = _clauses(reader)
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


def _clauses(reader: Reader) -> dict[str, _Clause]:
    found: dict[str, _Clause] = {}
    while not reader.ended:
        reader.expect("WHEN")
        kind = "not matched" if reader.accept("NOT", "MATCHED") else "matched"
        if kind == "matched":
            reader.expect("MATCHED")
        elif reader.accept("BY", "SOURCE"):
            kind = "by source"
        else:
            reader.accept("BY", "TARGET")
        condition = reader.until("THEN", what="a condition") if reader.accept("AND") else None
        reader.expect("THEN")
        clause = _action(reader, kind, condition)
        if kind in found:
            raise UnsupportedFeature(f"a second clause of MERGE for the same rows: {clause}")
        found[kind] = clause
    if not found:
        raise reader.error("WHEN")
    return found


def _action(reader: Reader, kind: str, condition: str | None) -> _Clause:
    if kind != "not matched" and reader.accept("DELETE"):
        return _Clause(kind, condition, "DELETE")
    if kind == "matched":
        reader.expect("UPDATE", "SET")
        return _Clause(kind, condition, "UPDATE", None if reader.accept("*") else _assignments(reader))
    if kind == "by source":
        raise UnsupportedFeature("WHEN NOT MATCHED BY SOURCE with another action than DELETE")
    reader.expect("INSERT")
    return _Clause(kind, condition, "INSERT", None if reader.accept("*") else _inserted(reader))


def _assignments(reader: Reader) -> dict[str, str]:
    values: dict[str, str] = {}
    while True:
        name = reader.path("a column")[-1]
        reader.expect("=")
        values[name] = reader.until(",", "WHEN", what="an expression")
        if not reader.accept(","):
            return values


def _inserted(reader: Reader) -> dict[str, str]:
    names: list[str] = []
    texts: list[str] = []
    for listed, what in ((names, "a column"), (texts, "an expression")):
        reader.expect("(")
        while True:
            listed.append(reader.path(what)[-1] if listed is names else reader.until(",", what=what))
            if not reader.accept(","):
                break
        reader.expect(")")
        if listed is names:
            reader.expect("VALUES")
    if len(names) != len(texts):
        raise InvalidInput(f"SQL on a Lance table: INSERT has {len(names)} columns and {len(texts)} values")
    return dict(zip(names, texts, strict=True))


@dataclass(frozen=True)
class _Merge:
    """A merge of a source into an opened table; `target` and `source` are their names in the statement."""

    opened: LanceDataset
    frame: DataFrame
    target: str
    source: str
    case_rule: CaseRule
    in_utc: bool

    def execute(self, statement: Statement, on: str, clauses: dict[str, _Clause]) -> DataFrame:
        """Shape the source, build the merge and execute it."""
        matched, inserted, by_source = (clauses.get(kind) for kind in ("matched", "not matched", "by source"))
        keys = self._keys(on)
        values = self._values(keys, matched, inserted)
        rows = self.frame.alias(self.source)
        matching, condition = self._conditions(matched, inserted, by_source, values)
        if condition is not None:
            rows = rows.where(condition)
        shaped = rows.select(*(expr(text).alias(name) for name, text in values.items()))
        builder = self.opened.merge_insert(list(keys))
        if matched is not None and matched.action == "DELETE":
            builder = builder.when_matched_delete()
        elif matched is not None:
            builder = builder.when_matched_update_all(matching)
        if inserted is not None:
            builder = builder.when_not_matched_insert_all()
        if by_source is not None:
            builder = builder.when_not_matched_by_source_delete(self._unmatched(by_source))
        done = builder.execute(statement.rows_for(shaped), runner=statement.runner)
        counts = (done["num_updated_rows"], done["num_deleted_rows"], done["num_inserted_rows"])
        return statement.result(_CHANGED, [(sum(counts), *counts)])

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

    def _values(self, keys: dict[str, str], matched: _Clause | None, inserted: _Clause | None) -> dict[str, str]:
        """Return the source's expression of each column that the merge writes, keys first."""
        updates = self._written(matched) if matched is not None and matched.action == "UPDATE" else None
        inserts = None if inserted is None else self._written(inserted)
        for name, text in (inserts or {}).items():
            if name in keys and not _is_same(text, keys[name], self.source):
                raise UnsupportedFeature(f"INSERT of MERGE gives key {name!r} another value than the source's key")
        for name, key in keys.items():
            if inserts is not None and name not in inserts:
                raise UnsupportedFeature(f"INSERT of MERGE without the key {name!r}")
            if updates and name in updates and not _is_same(updates[name], key, self.source):
                raise UnsupportedFeature(f"UPDATE of MERGE changes the key {name!r}")
        if updates is not None and inserts is not None:
            for name in {**updates, **inserts}:
                one, other = (values.get(name, keys.get(name)) for values in (updates, inserts))
                if one is None or other is None or not _is_same(one, other, self.source):
                    raise UnsupportedFeature(
                        f"UPDATE and INSERT of MERGE with different values of column {name!r}: the merge writes "
                        "one row for both"
                    )
        return {**keys, **{name: text for name, text in (updates or inserts or {}).items() if name not in keys}}

    def _written(self, clause: _Clause) -> dict[str, str]:
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
            if not self._is_of_source(text):
                raise UnsupportedFeature(f"{text} in {clause.action} of MERGE, which is no value of the source alone")
            written[stored] = text
        return written

    def _is_of_source(self, text: str) -> bool:
        tree = parse_expression(text)
        if tree.find(exp.Query) is not None:
            return False
        return all(self._side_of(column)[0] == "source" for column in tree.find_all(exp.Column))

    # -- conditions -----------------------------------------------------------------------------------------------

    def _conditions(
        self, matched: _Clause | None, inserted: _Clause | None, by_source: _Clause | None, values: dict[str, str]
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
            raise UnsupportedFeature(f"{inserted}: a condition of INSERT beside another clause: filter the source")
        assert matched is not None
        assert matched.condition is not None
        if matched.action == "DELETE":
            raise UnsupportedFeature(f"{matched}: a condition of DELETE on the table, or beside another clause")
        return self._update_condition(matched.condition, values), None

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

    def _unmatched(self, clause: _Clause) -> str | None:
        if clause.condition is None:
            return None
        side = Side(self.opened.snapshot.schema.to_arrow_storage())
        return ExpressionWriter({self.target: side}, self.case_rule, self.in_utc).write(clause.condition)


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

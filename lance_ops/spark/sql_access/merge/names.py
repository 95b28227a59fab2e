"""What the columns in a MERGE are: of which table, under which name there, and what a clause may give them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.spark.sql_access.dialect import SparkSql
from lance_ops.spark.sql_access.expressions import conjuncts, parse_expression, quoted_path
from lance_ops.spark.sql_access.merge.clauses import Clause
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.translation import CaseRule

__all__ = ["MergeNames"]


@dataclass(frozen=True)
class MergeNames:
    """The names of both tables in a MERGE, and their columns."""

    target: str
    schema: Schema
    source: str
    source_columns: tuple[str, ...]
    case_rule: CaseRule

    def keys(self, on: str) -> dict[str, str]:
        """Return the source's expression of each key column; raise `UnsupportedFeature` for a condition without any."""
        keys, others = self._read_on(on)
        if not keys:
            raise UnsupportedFeature(
                f"{others[0]} in ON of MERGE, which joins by {self.target}.key = an expression of {self.source}"
            )
        return keys

    def conditions_beside_keys(self, on: str) -> list[str]:
        """Return the conditions of ON that are no equality of a key column and an expression of the source."""
        return self._read_on(on)[1]

    def written(self, clause: Clause) -> dict[str, str]:
        """Return the columns that a clause writes, in the table's spelling, and their expressions.

        Raises `InvalidInput` for an unknown column, and `UnsupportedFeature` for a subquery.
        """
        names = self.schema.names
        if clause.values is None:
            found = {name: self.case_rule.find(name, self.source_columns) for name in names}
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
            self._check_columns(text)
            written[stored] = text
        return written

    def check_keys(
        self, keys: dict[str, str], updates: Sequence[dict[str, str]], inserts: Sequence[dict[str, str]]
    ) -> None:
        """Raise `UnsupportedFeature` for a clause that gives a row another key than the source's."""
        for name, key in keys.items():
            for values in inserts:
                if name not in values:
                    raise UnsupportedFeature(f"INSERT of MERGE without the key {name!r}")
                if not self.is_same(values[name], key):
                    raise UnsupportedFeature(f"INSERT of MERGE gives key {name!r} another value than the source's key")
            for values in updates:
                if name in values and not self.is_same(values[name], key):
                    raise UnsupportedFeature(f"UPDATE of MERGE changes the key {name!r}")

    def check_unmatched_by_source(self, clause: Clause) -> None:
        """Raise `InvalidInput` for a clause of unmatched rows of the table that reads the source."""
        for text in (clause.condition, *(clause.values or {}).values()):
            if text is not None and any(side == "source" for side, _ in self._columns_of(text)):
                raise InvalidInput(
                    f"SQL on a Lance table: {text} in WHEN NOT MATCHED BY SOURCE reads {self.source}, which has no row "
                    "there"
                )

    def columns_of_target(self, text: str) -> list[str]:
        """Return the table's columns in an expression; raise `UnsupportedFeature` for a subquery."""
        return [name for side, name in self._columns_of(text) if side == "target"]

    def source_column(self, text: str) -> str | None:
        """Return the column that an expression over the source is; None if it is another expression."""
        tree = parse_expression(text)
        return self._side_of(tree)[1] if isinstance(tree, exp.Column) else None

    def is_of_source(self, text: str) -> bool:
        """Return whether an expression reads no column of the table."""
        return not self.columns_of_target(text)

    def is_same(self, one: str, other: str) -> bool:
        """Return whether two expressions are written alike, but for the spelling of their columns.

        With a backslash they must be the same text: a setting of the session says what it means.
        """
        return one == other if "\\" in one + other else self._plain(one) == self._plain(other)

    def _read_on(self, on: str) -> tuple[dict[str, str], list[str]]:
        """Return the source's expression of each key column, and the other conditions.

        An expression is written from its tree. A setting of the session says what a backslash means, and the tree does
        not follow it. So `UnsupportedFeature` is raised for a backslash beside an expression that computes a key.
        """
        keys: dict[str, str] = {}
        others: list[str] = []
        for condition in conjuncts(parse_expression(on)):
            found = self._key(condition)
            if found is None or found[0] in keys:
                others.append(condition.sql(SparkSql))
            else:
                keys[found[0]] = found[1]
        if "\\" in on and any(self.source_column(text) is None for text in keys.values()):
            raise UnsupportedFeature(
                "a backslash in ON of MERGE, which computes a key: a setting of Spark says what it means (compute the "
                "key in the source)"
            )
        for text in others:
            self._check_columns(text)
        return keys, others

    def _key(self, condition: exp.Expr) -> tuple[str, str] | None:
        """Return a column of the table and the source's expression of it; None if a condition makes no such pair."""
        if not isinstance(condition, exp.EQ):
            return None
        sides = [condition.this.unnest(), condition.expression.unnest()]
        for own, other in (sides, sides[::-1]):
            text = other.sql(SparkSql)
            if isinstance(own, exp.Column) and {side for side, _ in self._columns_of(text)} == {"source"}:
                side, name = self._side_of(own)
                column = self.source_column(text)
                if side == "target":
                    return name, text if column is None else quoted_path(self.source, column)
        return None

    def _check_columns(self, text: str) -> None:
        """Raise for a subquery, and for a column in doubt."""
        self._columns_of(text)

    def _columns_of(self, text: str) -> list[tuple[str, str]]:
        tree = parse_expression(text)
        if tree.find(exp.Query) is not None:
            raise UnsupportedFeature(f"{text} in MERGE, a subquery: join it to the source")
        return [self._side_of(column) for column in tree.find_all(exp.Column)]

    def _side_of(self, column: exp.Column) -> tuple[str, str]:
        """Return which table a column is of, and its name there; raise `InvalidInput` if that is in doubt."""
        parts = name_parts(column)
        places = {"target": (self.target, self.schema.names), "source": (self.source, self.source_columns)}
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

    def _plain(self, text: str) -> str:
        """Return an expression with each column as its table and its name there."""
        return parse_expression(text).unnest().transform(self._with_full_name).sql(SparkSql)

    def _with_full_name(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        side, name = self._side_of(node)
        return exp.column(name, table=side, quoted=True)

"""What the columns in a MERGE are: of which table, under which name there, and what a clause may give them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.spark.sql_access.merge.clauses import Clause
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.written_expressions import parse_expression, quoted_path
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
        """Return whether two expressions are written alike, but for the spelling of their columns."""
        return self._plain(one) == self._plain(other)

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
        return parse_expression(text).transform(self._with_full_name).sql("spark")

    def _with_full_name(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        side, name = self._side_of(node)
        return exp.column(name, table=side, quoted=True)

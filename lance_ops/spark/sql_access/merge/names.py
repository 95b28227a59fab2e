"""What the columns in a MERGE are: of which table, under which name there, and what a clause may give them."""

from __future__ import annotations

from sqlglot import exp

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.spark.sql_access.expressions import conjunct_texts, parse_expression, sides_of_equality
from lance_ops.spark.sql_access.merge.clauses import Clause
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.translation import CaseRule, quoted_path

__all__ = ["MergeNames"]


@dataclass(frozen=True)
class MergeNames:
    """The names of both tables in a MERGE, and their columns."""

    target: str
    schema: Schema
    source: str
    source_columns: tuple[str, ...]
    case_rule: CaseRule

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
            if stored in written:
                raise InvalidInput(f"SQL on a Lance table: column {stored!r} is set twice")
            self._check_columns(text)
            written[stored] = text
        return written

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
        _, name, field = self._side_of(tree) if isinstance(tree, exp.Column) else ("", None, ())
        return None if field else name

    def reads_no_target(self, text: str) -> bool:
        """Return whether an expression reads no column of the table."""
        return not self.columns_of_target(text)

    def is_same(self, one: str, other: str) -> bool:
        """Return whether two expressions are written alike, but for the spelling of their columns.

        With a backslash or two quotes they must be the same text: a setting of the session says what these mean.
        """
        if any(sign in text for sign in ("\\", "''", '""') for text in (one, other)):
            return one == other
        return self._with_full_names(one) == self._with_full_names(other)

    def keys_of_on(self, on: str) -> tuple[dict[str, str], bool]:
        """Return the source's expression of each key column, as ON has it, and whether ON has other conditions."""
        keys: dict[str, str] = {}
        has_others = False
        for condition in conjunct_texts(on):
            found = self._key(condition)
            if found is None or found[0] in keys:
                has_others = True
            else:
                keys[found[0]] = found[1]
        return keys, has_others

    def _key(self, condition: str) -> tuple[str, str] | None:
        """Return a column of the table and the source's expression of it; None if a condition makes no such pair."""
        texts = sides_of_equality(condition) or ()
        for column_text, text in (texts, texts[::-1]) if texts else ():
            own = parse_expression(column_text).unnest()
            if isinstance(own, exp.Column) and {side for side, _ in self._columns_of(text)} == {"source"}:
                side, name, field = self._side_of(own)
                column = self.source_column(text)
                if side == "target" and not field:
                    return name, text if column is None else quoted_path(self.source, column)
        return None

    def _check_columns(self, text: str) -> None:
        """Raise for a subquery, and for a column in doubt."""
        self._columns_of(text)

    def _columns_of(self, text: str) -> list[tuple[str, str]]:
        tree = parse_expression(text)
        if tree.find(exp.Query) is not None:
            raise UnsupportedFeature(f"{text} in MERGE, a subquery: join it to the source")
        return [self._side_of(column)[:2] for column in tree.find_all(exp.Column)]

    def _side_of(self, column: exp.Column) -> tuple[str, str, tuple[str, ...]]:
        """Return which table a column is of, its name there, and the path of a field in it.

        Raises `InvalidInput` if that is in doubt. As in Spark, the name of a table comes before that of a column.
        """
        parts = name_parts(column)
        places = {"target": (self.target, self.schema.names), "source": (self.source, self.source_columns)}
        for begin in (1, 0):
            found = [
                (side, stored, parts[begin + 1 :])
                for side, (alias, names) in places.items()
                if len(parts) > begin
                and (begin == 0 or parts[0].lower() == alias.lower())
                and (stored := self.case_rule.find(parts[begin], names)) is not None
            ]
            if len(found) == 1:
                return found[0]
            if found:
                break
        what = "is in both tables: name one" if found else "is in neither table"
        raise InvalidInput(f"SQL on a Lance table: column {column.sql('spark')} of MERGE {what}")

    def _with_full_names(self, text: str) -> exp.Expr:
        """Return the tree of an expression with each column as its table and its name there."""
        return parse_expression(text).unnest().transform(self._with_full_name)

    def _with_full_name(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        side, name, field = self._side_of(node)
        return exp.column(".".join((name, *field)), table=side, quoted=True)

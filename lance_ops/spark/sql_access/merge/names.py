"""What the columns in a MERGE are: of which table, under which name there, and what a clause may give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from sqlglot import exp

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.spark.sql_access.expressions import (
    CLOCK_OR_COLUMN,
    conjunct_texts,
    parse_expression,
    sides_of_equality,
    with_qualifiers,
)
from lance_ops.spark.sql_access.merge.clauses import Clause, ClauseKind
from lance_ops.spark.sql_access.query_needs import name_parts
from lance_ops.spark.sql_access.words import clocks_without_brackets, split_words
from lance_ops.spark.translation import CaseRule, quoted_path

__all__ = ["MergeNames"]

Side: TypeAlias = Literal["target", "source"]

_SEEN_BY: Mapping[ClauseKind, Sequence[Side]] = {
    "MATCHED": ("target", "source"),
    "NOT MATCHED": ("source",),
    "NOT MATCHED BY SOURCE": ("target",),
}
"""The tables whose columns a clause may read."""


@dataclass(frozen=True)
class _Place:
    """The table that a column is of, and its path there: the column's name, then those of fields in it."""

    side: Side
    path: tuple[str, ...]


@dataclass(frozen=True)
class MergeNames:
    """The names of both tables in a MERGE, and their columns.

    The methods other than `resolved` and `qualified` take expressions that `qualified` returned.
    """

    target: str
    schema: Schema
    source: str
    source_columns: tuple[str, ...]
    case_rule: CaseRule

    def resolved(self, clause: Clause, kind: ClauseKind) -> Clause:
        """Return a clause with the table's columns in the table's spelling, and all columns in its texts qualified.

        Raises `InvalidInput` for an unknown column, and as `qualified` does.
        """
        condition = None if clause.condition is None else self.qualified(clause.condition, kind)
        values = self._all_of_source() if clause.takes_source else self._written(clause.values, kind)
        return Clause(condition, clause.action, values)

    def qualified(self, text: str, kind: ClauseKind = "MATCHED") -> str:
        """Return an expression with the name of its table before each column.

        A clause for unmatched rows sees the columns of their table alone, as in Spark: where the rows of both tables
        are joined, a column of the other table would be null. Raises `InvalidInput` for a column that is in doubt or is
        one of the other table, and for a word as `current_date` if a table has a column of that name. Raises
        `UnsupportedFeature` for a subquery.
        """
        _check_has_no_subquery(text)
        self._check_clocks_are_no_columns(text)
        return with_qualifiers(text, lambda column: self._missing_qualifier(column, text, kind))

    def _missing_qualifier(self, column: exp.Column, text: str, kind: ClauseKind) -> str | None:
        """Return the name of a column's table in backticks; None if the text has it."""
        found = self._find(column, _SEEN_BY[kind])
        if found is None:
            if self._find(column, _SEEN_BY["MATCHED"]) is not None:
                hidden = self.source if "target" in _SEEN_BY[kind] else self.target
                raise InvalidInput(
                    f"SQL on a Lance table: {text} in WHEN {kind} reads {hidden}, which has no row there"
                )
            raise InvalidInput(f"SQL on a Lance table: column {column.sql('spark')} of MERGE is in neither table")
        has_qualifier = len(found.path) < len(name_parts(column))
        return None if has_qualifier else quoted_path(self._alias(found.side))

    def _check_clocks_are_no_columns(self, text: str) -> None:
        taken_for_clock = [function.sql_name() for function in CLOCK_OR_COLUMN]
        for word in clocks_without_brackets(split_words(text)):
            if (
                word.upper() in taken_for_clock
                and self.case_rule.find(word, (*self.schema.names, *self.source_columns)) is not None
            ):
                raise InvalidInput(
                    f"SQL on a Lance table: {word} in MERGE may be a column or the clock: write the column with its "
                    f"table, as {quoted_path(self.source, word)}, and the clock as {word}()"
                )

    def _alias(self, side: Side) -> str:
        return self.target if side == "target" else self.source

    def _all_of_source(self) -> dict[str, str]:
        """Return the source's column for each of the table's, as `*` means."""
        found = {name: self.case_rule.find(name, self.source_columns) for name in self.schema.names}
        missing = [name for name, column in found.items() if column is None]
        if missing:
            raise InvalidInput(
                f"SQL on a Lance table: the source of MERGE has no column {', '.join(missing)}, which * needs: name "
                "the columns"
            )
        return {name: quoted_path(self.source, str(column)) for name, column in found.items()}

    def _written(self, values: Mapping[str, str], kind: ClauseKind) -> dict[str, str]:
        names = self.schema.names
        written = {}
        for name, text in values.items():
            stored = self.case_rule.find(name, names)
            if stored is None:
                raise InvalidInput(f"SQL on a Lance table: no column {name!r}: there are {', '.join(names)}")
            if stored in written:
                raise InvalidInput(f"SQL on a Lance table: column {stored!r} is set twice")
            written[stored] = self.qualified(text, kind)
        return written

    def columns_of_target(self, text: str) -> list[str]:
        """Return the table's columns in an expression."""
        return self._columns_of(text, "target")

    def columns_of_source(self, text: str) -> list[str]:
        """Return the source's columns in an expression."""
        return self._columns_of(text, "source")

    def source_column(self, text: str) -> str | None:
        """Return the column that an expression over the source is; None if it is another expression."""
        tree = parse_expression(text)
        if not isinstance(tree, exp.Column):
            return None
        name, *fields = self._place(tree).path
        return None if fields else name

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
            if not isinstance(own, exp.Column) or self.columns_of_target(text) or not self.columns_of_source(text):
                continue
            key = self._place(own)
            if key.side == "target" and len(key.path) == 1:
                column = self.source_column(text)
                return key.path[0], text if column is None else quoted_path(self.source, column)
        return None

    def _columns_of(self, text: str, side: Side) -> list[str]:
        places = map(self._place, parse_expression(text).find_all(exp.Column))
        return [place.path[0] for place in places if place.side == side]

    def _place(self, column: exp.Column) -> _Place:
        """Return what a qualified column is."""
        found = self._find(column, _SEEN_BY["MATCHED"])
        assert found is not None, column
        return found

    def _find(self, column: exp.Column, sides: Sequence[Side]) -> _Place | None:
        """Return what a column is that may be of any of these tables; None if it is of none.

        Raises `InvalidInput` if it may be of both. As in Spark, the name of a table comes before that of a column.
        """
        parts = name_parts(column)
        columns = {"target": self.schema.names, "source": self.source_columns}
        for begin in (1, 0):
            found = [
                _Place(side, (stored, *parts[begin + 1 :]))
                for side in sides
                if len(parts) > begin
                and (begin == 0 or parts[0].lower() == self._alias(side).lower())
                and (stored := self.case_rule.find(parts[begin], columns[side])) is not None
            ]
            if len(found) > 1:
                raise InvalidInput(
                    f"SQL on a Lance table: column {column.sql('spark')} of MERGE is in both tables: name one"
                )
            if found:
                return found[0]
        return None

    def _with_full_names(self, text: str) -> exp.Expr:
        """Return the tree of an expression with each column as its table and its name there."""
        return parse_expression(text).unnest().transform(self._with_full_name)

    def _with_full_name(self, node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        place = self._place(node)
        return exp.column(".".join(place.path), table=place.side, quoted=True)


def _check_has_no_subquery(text: str) -> None:
    if parse_expression(text).find(exp.Query) is not None:
        raise UnsupportedFeature(f"{text} in MERGE, a subquery: join it to the source")

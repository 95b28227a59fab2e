"""Read the clauses of a MERGE: `WHEN [NOT] MATCHED [BY TARGET | BY SOURCE] [AND condition] THEN action`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, TypeAlias

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.statement import assigned_column, check_no_default, check_values
from lance_ops.spark.sql_access.words import Reader

__all__ = ["Action", "Clause", "ClauseKind", "Clauses", "read_clauses"]


Action: TypeAlias = Literal["UPDATE", "DELETE", "INSERT"]
"""What a clause does with its rows."""

ClauseKind: TypeAlias = Literal["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"]
"""Which rows a clause is about: pairs that meet ON, or rows of the source or of the table without a partner."""


@dataclass(frozen=True)
class Clause:
    """One WHEN: its condition and its action.

    `values` are the columns and expressions of UPDATE and INSERT; with `takes_source` they are those of `*`.
    """

    condition: str | None
    action: Action
    values: Mapping[str, str]
    takes_source: bool = False

    def with_texts(self, change: Callable[[str], str]) -> Clause:
        """Return the clause with what a function makes of each expression."""
        condition = None if self.condition is None else change(self.condition)
        values = {name: change(text) for name, text in self.values.items()}
        return replace(self, condition=condition, values=values)


@dataclass(frozen=True)
class Clauses:
    """The clauses of a MERGE, those of one kind in their order: the first whose condition is true counts."""

    matched: tuple[Clause, ...]
    inserted: tuple[Clause, ...]
    unmatched_by_source: tuple[Clause, ...]

    def __iter__(self) -> Iterator[Clause]:
        yield from self.matched
        yield from self.inserted
        yield from self.unmatched_by_source

    @property
    def all_matched_delete(self) -> bool:
        """Whether all clauses of matched rows delete them."""
        return bool(self.matched) and all(clause.action == "DELETE" for clause in self.matched)

    def mapped(self, change: Callable[[Clause, ClauseKind], Clause]) -> Clauses:
        """Return the clauses that a function makes of each clause and its kind."""
        return Clauses(
            tuple(change(clause, "MATCHED") for clause in self.matched),
            tuple(change(clause, "NOT MATCHED") for clause in self.inserted),
            tuple(change(clause, "NOT MATCHED BY SOURCE") for clause in self.unmatched_by_source),
        )

    def with_texts(self, change: Callable[[str], str]) -> Clauses:
        """Return the clauses with what a function makes of each expression."""
        return self.mapped(lambda clause, _: clause.with_texts(change))

    @property
    def updates(self) -> list[Clause]:
        """The clauses that give rows of the table new values."""
        return [clause for clause in (*self.matched, *self.unmatched_by_source) if clause.action == "UPDATE"]

    @property
    def updates_unmatched_by_source(self) -> bool:
        """Whether a clause updates rows of the table that no source row matches."""
        return any(clause.action == "UPDATE" for clause in self.unmatched_by_source)


def read_clauses(reader: Reader, *tables: str) -> Clauses:
    """Read the clauses to the end of the statement, which calls the table by any of these names."""
    found: dict[ClauseKind, list[Clause]] = {"MATCHED": [], "NOT MATCHED": [], "NOT MATCHED BY SOURCE": []}
    while not reader.ended:
        reader.expect("WHEN")
        kind: ClauseKind = "NOT MATCHED" if reader.accept("NOT", "MATCHED") else "MATCHED"
        if kind == "MATCHED":
            reader.expect("MATCHED")
        elif reader.accept("BY", "SOURCE"):
            kind = "NOT MATCHED BY SOURCE"
        else:
            reader.accept("BY", "TARGET")
        condition = reader.until("THEN", what="a condition") if reader.accept("AND") else None
        reader.expect("THEN")
        found[kind].append(_action(reader, kind, condition, tables))
    if not any(found.values()):
        raise reader.error("WHEN")
    matched, inserted, unmatched_by_source = found.values()
    return Clauses(tuple(matched), tuple(inserted), tuple(unmatched_by_source))


def _action(reader: Reader, kind: ClauseKind, condition: str | None, tables: tuple[str, ...]) -> Clause:
    if kind != "NOT MATCHED" and reader.accept("DELETE"):
        return Clause(condition, "DELETE", {})
    if kind != "NOT MATCHED":
        reader.expect("UPDATE", "SET")
        takes_source = kind == "MATCHED" and reader.accept("*")
        return Clause(condition, "UPDATE", {} if takes_source else _assignments(reader, tables), takes_source)
    reader.expect("INSERT")
    takes_source = reader.accept("*")
    return Clause(condition, "INSERT", {} if takes_source else _inserted(reader, tables), takes_source)


def _assignments(reader: Reader, tables: tuple[str, ...]) -> dict[str, str]:
    values: dict[str, str] = {}
    while True:
        name = assigned_column(reader, *tables)
        if name in values:
            raise InvalidInput(f"SQL on a Lance table: column {name!r} is set twice")
        reader.expect("=")
        values[name] = reader.until(",", "WHEN", what="an expression")
        check_no_default(values[name])
        if not reader.accept(","):
            return values


def _inserted(reader: Reader, tables: tuple[str, ...]) -> dict[str, str]:
    names: list[str] = []
    texts: list[str] = []
    for listed, what in ((names, "a column"), (texts, "an expression")):
        reader.expect("(")
        while True:
            is_name = listed is names
            listed.append(assigned_column(reader, *tables) if is_name else reader.until(",", what=what))
            if not reader.accept(","):
                break
        reader.expect(")")
        if listed is names:
            check_values(reader)
            reader.expect("VALUES")
    if len(names) != len(texts):
        raise InvalidInput(f"SQL on a Lance table: INSERT has {len(names)} columns and {len(texts)} values")
    if len({*names}) < len(names):
        raise InvalidInput(f"SQL on a Lance table: INSERT names a column twice: {', '.join(names)}")
    return dict(zip(names, texts, strict=True))

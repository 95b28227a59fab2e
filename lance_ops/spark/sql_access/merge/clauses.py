"""Read the clauses of a MERGE: `WHEN [NOT] MATCHED [BY TARGET | BY SOURCE] [AND condition] THEN action`."""

from __future__ import annotations

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.words import Reader

__all__ = ["Clause", "Clauses", "read_clauses"]


@dataclass(frozen=True)
class Clause:
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


@dataclass(frozen=True)
class Clauses:
    """The clauses of a MERGE, those of one kind in their order: the first whose condition is true counts."""

    matched: tuple[Clause, ...]
    inserted: tuple[Clause, ...]
    by_source: Clause | None

    @property
    def all_matched_delete(self) -> bool:
        """Whether all clauses of matched rows delete them."""
        return bool(self.matched) and all(clause.action == "DELETE" for clause in self.matched)


def read_clauses(reader: Reader) -> Clauses:
    """Read the clauses to the end of the statement; raise `UnsupportedFeature` for those that no merge has together."""
    found: dict[str, list[Clause]] = {"matched": [], "not matched": [], "by source": []}
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
        if kind == "by source" and found[kind]:
            raise UnsupportedFeature(f"a second clause of MERGE for the same rows: {clause}")
        found[kind].append(clause)
    if not any(found.values()):
        raise reader.error("WHEN")
    matched, inserted, by_source = found.values()
    return Clauses(tuple(matched), tuple(inserted), by_source[0] if by_source else None)


def _action(reader: Reader, kind: str, condition: str | None) -> Clause:
    if kind != "not matched" and reader.accept("DELETE"):
        return Clause(kind, condition, "DELETE")
    if kind == "matched":
        reader.expect("UPDATE", "SET")
        return Clause(kind, condition, "UPDATE", None if reader.accept("*") else _assignments(reader))
    if kind == "by source":
        raise UnsupportedFeature("WHEN NOT MATCHED BY SOURCE with another action than DELETE")
    reader.expect("INSERT")
    return Clause(kind, condition, "INSERT", None if reader.accept("*") else _inserted(reader))


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

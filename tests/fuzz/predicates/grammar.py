"""Random predicates over the columns of `tables`, as trees, so that one that differs can be reduced.

A row of `_TEMPLATES` makes an expression of a kind from parts of other kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from tests.fuzz.predicates.tables import COLUMNS, FIELDS, ColumnSpec, Kind

__all__ = ["Grammar", "Node"]


@dataclass(frozen=True)
class Node:
    """An expression: its SQL, its kind and its parts.

    `served_by` are the paths of the columns whose indices must answer a part of this condition.
    """

    sql: str
    kind: Kind
    parts: tuple[Node, ...] = ()
    served_by: frozenset[str] = frozenset()

    def walk(self) -> Iterator[Node]:
        """Yield every node, parts before the whole."""
        for part in self.parts:
            yield from part.walk()
        yield self

    @property
    def is_condition(self) -> bool:
        """Whether this is a truth value, so that a filter can have it."""
        return self.kind is Kind.BOOLEAN


_I, _F, _N, _B, _T = Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.BOOLEAN, Kind.TEXT
_D, _TS, _TZ, _DUR = Kind.DATE, Kind.INSTANT, Kind.ZONED, Kind.DURATION
_IS, _TEXTS, _ST, _STS = Kind.INTEGERS, Kind.TEXTS, Kind.STRUCT, Kind.STRUCTS

_TEMPLATES: dict[Kind, tuple[tuple[str, tuple[Kind, ...]], ...]] = {
    _I: (
        ("({} + {})", (_I, _I)),
        ("({} - {})", (_I, _I)),
        ("({} * {})", (_I, _I)),
        ("({} / 7)", (_I,)),
        ("(7 / {})", (_I,)),
        ("({} + 9223372036854775807)", (_I,)),
        ("({} % 7)", (_I,)),
        ("({} % -2)", (_I,)),
        ("(- {})", (_I,)),
        ("abs({})", (_I,)),
        ("coalesce({}, {})", (_I, _I)),
        ("nullif({}, {})", (_I, _I)),
        ("CASE WHEN {} THEN {} ELSE {} END", (_B, _I, _I)),
        ("CASE WHEN {} THEN {} END", (_B, _I)),
        ("CAST({} AS BIGINT)", (_I,)),
        ("CAST({} AS SMALLINT)", (_I,)),
        ("TRY_CAST({} AS TINYINT)", (_I,)),
        ("TRY_CAST({} AS INT)", (_F,)),
        ("TRY_CAST({} AS INT)", (_T,)),
        ("CAST({} AS INT)", (_B,)),
        ("arrow_cast({}, 'Int64')", (_I,)),
        ("length({})", (_T,)),
        ("octet_length({})", (_T,)),
        ("date_part('year', {})", (_TS,)),
        ("date_part('dow', {})", (_D,)),
        ("date_part('hour', {})", (_TZ,)),
        ("array_length({})", (_IS,)),
        ("{}[1]", (_IS,)),
        ("{}[-1]", (_IS,)),
        ("array_element({}, 2)", (_IS,)),
        ("{}[1]['x']", (_STS,)),
        ("{}['x']", (_ST,)),
    ),
    _F: (
        ("({} + {})", (_F, _F)),
        ("({} * {})", (_F, _I)),
        ("({} / 4)", (_F,)),
        ("({} % 2)", (_F,)),
        ("(- {})", (_F,)),
        ("abs({})", (_F,)),
        ("floor({})", (_F,)),
        ("ceil({})", (_F,)),
        ("round({})", (_F,)),
        ("coalesce({}, {})", (_F, _F)),
        ("CASE WHEN {} THEN {} ELSE {} END", (_B, _F, _F)),
        ("CAST({} AS DOUBLE)", (_I,)),
        ("CAST({} AS DOUBLE)", (_N,)),
        ("CAST({} AS FLOAT)", (_F,)),
        ("arrow_cast({}, 'Float32')", (_F,)),
        ("{}['in']['z']", (_ST,)),
    ),
    _N: (
        ("coalesce({}, {})", (_N, _N)),
        ("({} % 7)", (_N,)),
        ("CAST({} AS DECIMAL(38, 6))", (_N,)),
        ("CAST({} AS DECIMAL(22, 1))", (_I,)),
    ),
    _T: (
        ("lower({})", (_T,)),
        ("upper({})", (_T,)),
        ("btrim({})", (_T,)),
        ("({} || {})", (_T, _T)),
        ("concat({}, {})", (_T, _T)),
        ("coalesce({}, {})", (_T, _T)),
        ("nullif({}, 'a')", (_T,)),
        ("CASE WHEN {} THEN {} ELSE {} END", (_B, _T, _T)),
        ("CAST({} AS STRING)", (_I,)),
        ("arrow_cast({}, 'LargeUtf8')", (_T,)),
        ("{}[1]", (_TEXTS,)),
        ("{}[1]['y']", (_STS,)),
        ("{}['t']", (_ST,)),
    ),
    _D: (
        ("CAST({} AS DATE)", (_TS,)),
        ("coalesce({}, {})", (_D, _D)),
        ("CASE WHEN {} THEN {} ELSE {} END", (_B, _D, _D)),
    ),
    _TS: (
        ("date_trunc('month', {})", (_TS,)),
        ("CAST({} AS TIMESTAMP)", (_D,)),
        ("coalesce({}, {})", (_TS, _TS)),
    ),
    _TZ: (("coalesce({}, {})", (_TZ, _TZ)),),
    Kind.BINARY: (("coalesce({}, {})", (Kind.BINARY, Kind.BINARY)),),
    _B: (
        ("({} AND {})", (_B, _B)),
        ("({} OR {})", (_B, _B)),
        ("(NOT {})", (_B,)),
        ("({} IS TRUE)", (_B,)),
        ("({} IS NOT FALSE)", (_B,)),
        ("({} IS NULL)", (_B,)),
        ("({} = {})", (_B, _B)),
        ("coalesce({}, {})", (_B, _B)),
        ("CASE WHEN {} THEN {} ELSE {} END", (_B, _B, _B)),
        ("isnan({})", (_F,)),
        ("starts_with({}, 'a')", (_T,)),
        ("ends_with({}, 'b')", (_T,)),
        ("contains({}, 'b')", (_T,)),
        ("({} LIKE 'a%')", (_T,)),
        ("({} LIKE '%b_%')", (_T,)),
        ("({} NOT LIKE '_')", (_T,)),
        ("({} ILIKE 'A%')", (_T,)),
        ("regexp_like({}, '^[a-zé]+$')", (_T,)),
        ("array_has({}, 7)", (_IS,)),
        ("array_has({}, 'a')", (_TEXTS,)),
        ("array_has_any({}, [1, 3])", (_IS,)),
        ("array_has_all({}, ['b'])", (_TEXTS,)),
        ("CAST({} AS BOOLEAN)", (_I,)),
        ("CAST({} AS BOOLEAN)", (_N,)),
        ("(NOT ({} IS TRUE))", (_B,)),
    ),
}
_ANY_KIND = tuple(Kind)
_COMPARED = (_I, _I, _I, _F, _F, _N, _T, _T, Kind.BINARY, _D, _TS, _TZ, Kind.TIME, _DUR)
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
_MIXED = ((_I, _F), (_I, _N), (_F, _N), (_D, _TS), (_TS, _TZ))
_PREFIXES = ("'a%'", "'ab%'", "'it''s%'", "'é%'", "'😀%'")


class Grammar:
    """Draws predicates. `depth` bounds the nesting of an expression."""

    def __init__(self, random: Random) -> None:
        self._random = random
        every = (*COLUMNS, *FIELDS)
        self._columns = {kind: [column for column in every if column.kind is kind] for kind in Kind}
        self._paths = {column.path for column in every}
        self._indexed = [column for column in every if column.indexed]

    def predicate(self, depth: int = 3) -> Node:
        """Draw a condition; a third of all conditions are of a form that an index answers."""
        draw = self._random.random()
        if draw < 0.35 or depth == 0:
            return self.served()
        if draw < 0.5:
            return self._conjunction(depth - 1)
        if draw < 0.75:
            return self._comparison(depth - 1)
        return self._from_template(Kind.BOOLEAN, depth - 1)

    def column(self, depth: int = 3) -> Node:
        """Draw an expression of any kind."""
        return self.value(self._random.choice(_ANY_KIND), depth)

    def served(self) -> Node:
        """Draw a condition on one column, as an index on that column answers it."""
        column = self._random.choice(self._indexed)
        path, literals = self._random.choice(_spellings(column.path)), column.literals
        forms = [f"{path} IS NULL", f"{path} IS NOT NULL"]
        if column.kind is Kind.BOOLEAN:
            forms += [path, f"NOT {path}", f"{path} = true"]
        else:
            one, other = self._random.choice(literals), self._random.choice(literals)
            forms += [f"{path} {operator} {one}" for operator in _OPERATORS if operator != "!="]
            forms += [f"{one} < {path}", f"{path} BETWEEN {one} AND {other}", f"{path} IN ({one}, {other})"]
        if column.kind is Kind.TEXT:
            forms.append(f"{path} LIKE {self._random.choice(_PREFIXES)}")
        served_by = frozenset([column.path])
        return Node(f"({self._random.choice(forms)})", Kind.BOOLEAN, (Node(column.path, column.kind),), served_by)

    def _conjunction(self, depth: int) -> Node:
        parts = tuple(self.predicate(depth) for _ in range(self._random.choice((2, 2, 3))))
        sql = " AND ".join(part.sql for part in parts)
        served_by: frozenset[str] = frozenset().union(*(part.served_by for part in parts))
        if not all(map(self._has_column, parts)):  # a constant part may make the whole a constant
            served_by = frozenset()
        return Node(f"({sql})", Kind.BOOLEAN, parts, served_by)

    def _has_column(self, node: Node) -> bool:
        return any(part.sql in self._paths for part in node.walk())

    def _comparison(self, depth: int) -> Node:
        draw = self._random.random()
        if draw < 0.1:
            value = self.value(self._random.choice(_ANY_KIND), depth)
            return Node(f"({value.sql} IS NULL)", Kind.BOOLEAN, (value,))
        kinds = self._random.choice(_MIXED) if draw < 0.2 else (self._random.choice(_COMPARED),) * 2
        left = self.value(kinds[0], depth)
        if draw < 0.4:
            items = ", ".join(self._literal(kinds[0]) for _ in range(self._random.randrange(1, 4)))
            return Node(f"({left.sql} {self._random.choice(('IN', 'NOT IN'))} ({items}))", Kind.BOOLEAN, (left,))
        if draw < 0.5:
            ends = f"{self._literal(kinds[0])} AND {self._literal(kinds[0])}"
            return Node(f"({left.sql} BETWEEN {ends})", Kind.BOOLEAN, (left,))
        right = self.value(kinds[1], depth) if draw < 0.75 else Node(self._literal(kinds[1]), kinds[1])
        return Node(f"({left.sql} {self._random.choice(_OPERATORS)} {right.sql})", Kind.BOOLEAN, (left, right))

    def value(self, kind: Kind, depth: int) -> Node:
        """Draw an expression of a kind."""
        if kind is Kind.BOOLEAN and depth > 0:
            return self.predicate(depth - 1)
        if kind in _TEMPLATES and depth > 0 and self._random.random() < 0.5:
            return self._from_template(kind, depth - 1)
        return Node(self._random.choice(self._columns[kind]).path, kind)

    def _from_template(self, kind: Kind, depth: int) -> Node:
        template, kinds = self._random.choice(_TEMPLATES[kind])
        parts = tuple(self._part(kind, each, depth) for each in kinds)
        return Node(template.format(*(part.sql for part in parts)), kind, parts)

    def _part(self, whole: Kind, kind: Kind, depth: int) -> Node:
        """Draw a part; a part of the same kind as the whole may be a literal."""
        if whole is kind and kind is not Kind.BOOLEAN and self._random.random() < 0.2:
            return Node(self._literal(kind), kind)
        return self.value(kind, depth)

    def _literal(self, kind: Kind) -> str:
        column: ColumnSpec = self._random.choice(self._columns[kind])
        return self._random.choice(column.literals)


def _spellings(path: str) -> tuple[str, ...]:
    """Return a path with its names joined by dots, and with the inner ones in brackets."""
    first, *inner = path.split(".")
    return path, first + "".join(f"['{name}']" for name in inner)

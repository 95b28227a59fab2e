"""The differences from pylance that an expression may show; `docs/differences.md` explains them to users.

A known difference must be proved. Either pylance gives our answer to another spelling of the expression, in which the
difference has no effect, or each row that differs is one that the difference is about. `REFUSALS` are errors of
pylance, `CAUSES` are other differences. Each has an example, and a test asserts that the example still differs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from re import Match

import pyarrow as pa

from tests.fuzz.predicates.answers import Answer, Form, ask_ours, ask_theirs
from tests.fuzz.predicates.grammar import Node
from tests.fuzz.predicates.proof import Case
from tests.fuzz.predicates.respelling import (
    WIDE,
    in_nanoseconds,
    replace_columns,
    replace_nodes,
    with_one_binary_type,
    with_one_time_unit,
    with_rounded_literals,
)
from tests.fuzz.predicates.tables import COLUMNS, FIELDS, Kind

__all__ = ["REASONS", "reasons_for"]

CHOICE = "pylance has no CASE"
_MOST_SPELLINGS = 8
_TYPES = {column.path: column.type for column in (*COLUMNS, *FIELDS)}


@dataclass(frozen=True)
class Refusal:
    """An error that only pylance raises.

    `respell` spells an expression so that pylance accepts it; None says that pylance has no such spelling.
    """

    reason: str
    pattern: str
    respell: Callable[[Node, str, Match[str]], str] | None


@dataclass(frozen=True)
class Cause:
    """A reason for different values, or for an error of our library; `explains` proves it for a case."""

    reason: str
    explains: Callable[[Case], bool]


def reasons_for(case: Case) -> list[str]:
    """Return why the answers differ; empty if that is not known."""
    branches = _branches(case)
    if branches and not case.ours.error:
        reasons = [CHOICE]
        for branch in branches:
            if not branch.agrees:
                found = _reasons(branch)
                if not found:
                    return []
                reasons += found
        return reasons
    return _reasons(case)


def _reasons(case: Case) -> list[str]:
    reasons: list[str] = []
    for _ in range(_MOST_SPELLINGS):
        if case.ours.error or not case.theirs.error:
            break
        matches = ((refusal, re.search(refusal.pattern, case.theirs.error)) for refusal in REFUSALS)
        refusal, match = next(((each, match) for each, match in matches if match), (None, None))
        if refusal is None or match is None:
            break
        reasons.append(refusal.reason)
        if refusal.respell is None:
            return reasons
        sql = refusal.respell(case.node, case.sql, match)
        if sql == case.sql:
            return []
        case = case.respelled(sql)
    if reasons and case.agrees:
        return reasons
    cause = next((cause for cause in CAUSES if cause.explains(case)), None)
    return [] if cause is None else [*reasons, cause.reason]


def _branches(case: Case) -> list[Case]:
    """Return the case for each branch of the outermost CASE, with the branch in the place of the CASE."""
    wholes_first = reversed(list(case.node.walk()))
    choice = next((part for part in wholes_first if part.sql.startswith("CASE ") and part.sql in case.sql), None)
    if choice is None:
        return []
    condition, *values = choice.parts
    taken = frozenset(case.where(f"{condition.sql} IS TRUE"))
    rows = (taken, case.ids - taken)
    texts = [_typed(case, choice, value) for value in values] + ["CAST(NULL AS BIGINT)"] * (2 - len(values))
    found = []
    for text, ids in zip(texts, rows, strict=True):
        branch = case.limited(case.sql.replace(choice.sql, text), ids)
        found += _branches(branch) or [branch]
    return found


def _typed(case: Case, choice: Node, value: Node) -> str:
    """Return a branch's text in the type of the CASE, which decides how a literal beside it is rounded."""
    is_double = choice.kind is Kind.FLOAT and ask_ours(case.subject.ours, Form.COLUMN, choice.sql).type == pa.float64()
    return f"CAST({value.sql} AS DOUBLE)" if is_double else value.sql


# --- spellings that pylance accepts ---


def _widened(_: Node, sql: str, found: Match[str]) -> str:
    """Cast the columns of the type that does not hold a literal."""
    name = found["type"]
    if name.startswith("Time"):
        return with_one_time_unit(sql)
    if name == "Float16":
        return with_rounded_literals(sql, half=True)
    types = {"FixedSizeBinary(2)": pa.binary(2)}
    wanted = types.get(name) or next((kind for kind in _TYPES.values() if _name(kind) == name), None)
    casts = {path: text for path, text in WIDE.items() if _TYPES[path] == wanted}
    if "." in found["literal"] or found["literal"].startswith("Float64"):
        casts = dict.fromkeys(casts, "CAST({} AS DOUBLE)")
    return replace_columns(sql, casts)


def _name(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"Decimal128({kind.precision}, {kind.scale})"
    return str(kind).replace("uint", "UInt").replace("int", "Int")


def _subtracted(node: Node, sql: str, _: Match[str]) -> str:
    def change(part: Node) -> str | None:
        if part.kind is not Kind.INTEGER or not part.sql.startswith("(- "):
            return None
        return f"(0 - CAST({part.parts[0].sql} AS DECIMAL(20, 0)))"

    return replace_nodes(sql, node, change)


def _compared_with_zero(node: Node, sql: str, _: Match[str]) -> str:
    def change(part: Node) -> str | None:
        is_cast = part.sql.startswith("CAST(") and part.sql.endswith(" AS BOOLEAN)")
        return f"({part.parts[0].sql} != 0)" if is_cast else None

    return replace_nodes(sql, node, change)


def _in_utc(_: Node, sql: str, __: Match[str]) -> str:
    """Write the instants that wall times of Paris have here."""
    for wall, instant in _INSTANTS_OF_WALL_TIMES.items():
        sql = sql.replace(f"timestamp '{wall}'", f"arrow_cast('{instant}', 'Timestamp(us, Some(\"Europe/Paris\"))')")
    return sql


_INSTANTS_OF_WALL_TIMES = {
    "2020-03-29 02:30:00.000000": "2020-03-29 00:59:59.999999Z",
    "2020-10-25 02:30:00.000000": "2020-10-25 00:30:00Z",
}


REFUSALS = (
    Refusal(
        "pylance has no intervals",
        r"Expression 'INTERVAL '3 hours''",
        lambda _, sql, __: sql.replace("interval '3 hours'", "arrow_cast(10800000000, 'Duration(us)')"),
    ),
    Refusal("pylance has no FLOOR and CEIL", r"Expression '(FLOOR|CEIL)\(", None),
    Refusal(
        "a literal of another type is compared by value",
        r"Received literal (?P<literal>.*) and could not convert to literal of type '(?P<type>[^']*)'",
        _widened,
    ),
    Refusal("times of different units compare", r"Time(32|64)\(", lambda _, sql, __: with_one_time_unit(sql)),
    Refusal(
        "fixed-size binary compares with binary",
        r"Cannot infer common argument type.*FixedSizeBinary",
        lambda _, sql, __: with_one_binary_type(sql),
    ),
    Refusal(
        "pylance has no coalesce of different binary types",
        r"Function 'coalesce' user-defined coercion failed",
        lambda _, sql, __: with_one_binary_type(sql),
    ),
    Refusal("unsigned integers can be negated", r"Negation only supports", _subtracted),
    Refusal("decimals are cast to truth values", r"Unsupported CAST from Decimal.* to Boolean", _compared_with_zero),
    Refusal(
        "a wall time that a zone skips or repeats has an instant",
        r"Cannot cast timezone to different timezone",
        _in_utc,
    ),
)
"""What pylance refuses."""


# --- causes ---


def _computes_decimals(case: Case) -> bool:
    return re.search(r"operator [/%] on decimals", case.ours.error) is not None and not case.theirs.error


def _overflows(case: Case) -> bool:
    """Whether an integer that our library refuses to compute is outside the type in which pylance computes it."""
    if (
        not re.search(r"overflow of int64|not in range|out of bounds|does not fit in precision", case.ours.error)
        or case.theirs.error
    ):
        return False
    return any(_ids_beyond(case, part) for part in case.nodes(Kind.INTEGER) if part.parts)


def _ids_beyond(case: Case, part: Node) -> set[int]:
    """Return the ids of the rows whose integer is not one of the type that pylance gives it."""
    if is_cast := re.match(r"CAST\((.*) AS (SMALLINT|BIGINT|INT)\)$", part.sql):
        bits = {"SMALLINT": 16, "INT": 32, "BIGINT": 64}[is_cast[2]]
        return case.where(_outside(part.parts[0].sql, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    if not re.match(r"\(- |abs\(|\(.* [-+*/%] ", part.sql):
        return set()
    low, high = _limits(case.their_type(part) or pa.int64())
    operands = sorted({each.sql for each in part.parts}, key=len, reverse=True)
    whole = "|".join(rf"(?<!\w){re.escape(operand)}(?!\w)" for operand in operands)
    exact = re.sub(whole, lambda found: f"CAST({found[0]} AS DECIMAL(20, 0))", part.sql) if operands else part.sql
    for literal in ("9223372036854775807",):
        exact = exact.replace(f" {literal})", f" CAST({literal} AS DECIMAL(20, 0)))")
    return case.where(_outside(exact, low, high)) | case.where(_outside(part.sql, low, high))


def _limits(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_decimal(kind):
        return 1 - 10**kind.precision, 10**kind.precision - 1
    bits = kind.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, 2**bits - 1)


def _outside(text: str, low: int, high: int) -> str:
    return f"({text}) < {low} OR ({text}) > {high}"


def _wraps_around(case: Case) -> bool:
    """Whether pylance computes integers in a type that does not hold each result."""
    sums = case.nodes(Kind.INTEGER, r"\(- |\(.* [-+*/%] |abs\(")
    if not sums or case.theirs.error or case.ours.error:
        return False
    return case.differing <= {each for part in sums for each in _ids_beyond(case, part)}


def _mixes_units(case: Case) -> bool:
    instants = [*case.nodes(Kind.INSTANT), *case.nodes(Kind.ZONED), *case.nodes(Kind.DATE)]
    types = {_TYPES[part.sql] for part in instants if part.sql in _TYPES}
    if len(types) < 2 and not (types and re.search(r"\.00\d*1|\.999999Z", case.sql)):
        return False
    return case.agrees_as(in_nanoseconds(case.sql))


def _ignores_signs(case: Case) -> bool:
    """Whether only the signs of zeros and NaNs differ: those of columns, or else those that are computed."""
    floats = case.nodes(Kind.FLOAT)
    if not floats or case.ours.error or case.theirs.error:
        return False
    if case.agrees_without_signs(re.sub(r"(?<![\w.])-0\.0\b", "0.0", case.sql)):
        return True
    if not re.search(r"\(- |round\(|ceil\(|% 2|\*|-0\.0| / 4|\+", case.sql):
        return False
    return case.differs_only_where([f"isnan({part.sql}) OR {part.sql} = 0" for part in floats])


def _rounds_literals(case: Case) -> bool:
    paths = {part.sql for part in case.nodes(Kind.FLOAT)} & {"f16", "f32", "f64", "st.in.z"}
    if paths - {"st.in.z"} not in ({"f16"}, {"f32"}):
        return False
    return case.agrees_as(with_rounded_literals(case.sql, half="f16" in paths))


def _counts_years(case: Case) -> bool:
    years = {part.sql for part in case.nodes(Kind.INTEGER, r"date_part\('year'")}
    return bool(years) and case.agrees_as(_with_zero(case, years))


def _compares_a_lenient_cast(case: Case) -> bool:
    casts = {part.sql for part in case.nodes(Kind.INTEGER, r"TRY_CAST\(")}
    return bool(casts) and case.agrees_as(_with_zero(case, casts))


def _with_zero(case: Case, texts: set[str]) -> str:
    """Add zero to some parts, which keeps pylance from moving what it computes to the other side of a comparison."""
    return replace_nodes(case.sql, case.node, lambda part: f"({part.sql} + 0)" if part.sql in texts else None)


def _leaves_out_rows(case: Case) -> bool:
    """Whether pylance raises for rows that another part of a conjunction leaves out."""
    if case.form is not Form.FILTER or not case.theirs.error or case.ours.error or " AND " not in case.sql:
        return False
    refused = case.parts_refused(lambda sql: ask_theirs(case.subject.theirs, Form.FILTER, sql))
    others = [part.sql for part in case.node.parts if part not in refused]
    if (
        not refused
        or not others
        or len(case.parts_refused(lambda sql: ask_ours(case.subject.ours, Form.FILTER, sql))) != len(refused)
    ):
        return False
    left: Answer = ask_theirs(case.subject.theirs, Form.FILTER, " AND ".join(others))
    return not left.error and set(case.ours.values) <= set(left.values)


def _drops_fractions(case: Case) -> bool:
    """Whether pylance divides a u64 by a signed integer as decimals, with digits after the point."""
    quotients = {part.sql for part in case.nodes(Kind.INTEGER, r"\(.* / ") if _is_fraction(case.their_type(part))}
    spelled = replace_nodes(
        case.sql, case.node, lambda part: f"CAST({part.sql} AS BIGINT)" if part.sql in quotients else None
    )
    return case.agrees_as(spelled)


def _is_fraction(kind: pa.DataType | None) -> bool:
    return kind is not None and pa.types.is_decimal(kind) and kind.scale > 0


def _widens_halves(case: Case) -> bool:
    """Whether pylance computes a half float in 16 bits."""
    return case.their_type(case.node) == pa.float16() and case.agrees_as(
        replace_columns(case.sql, {"f16": "CAST({} AS FLOAT)"})
    )


def _rounds_decimals(case: Case) -> bool:
    """Whether a decimal becomes the nearest double here, and a neighbour of it in pylance."""
    is_cast = case.node.sql.endswith(" AS DOUBLE)") and case.node.parts and case.node.parts[0].kind is Kind.DECIMAL
    if case.form is not Form.COLUMN or not is_cast or case.theirs.error:
        return False
    pairs = ((case.ours.values[each], case.theirs.values[each]) for each in case.differing)
    return all(left and right and abs(left - right) <= abs(left) * 2.0**-52 for left, right in pairs)


CAUSES = (
    Cause("decimals are divided as doubles", _computes_decimals),
    Cause("an overflow is an error", _overflows),
    Cause("instants are compared in the finer unit", _mixes_units),
    Cause("a literal beside a float is rounded everywhere", _rounds_literals),
    Cause("a year may be any number", _counts_years),
    Cause("a TRY_CAST that fails is null", _compares_a_lenient_cast),
    Cause("integers are computed in 64 bits, or exactly", _wraps_around),
    Cause("NaN and zero have no sign", _ignores_signs),
    Cause("a quotient of integers is an integer", _drops_fractions),
    Cause("half floats are computed as floats", _widens_halves),
    Cause("decimals become the nearest double", _rounds_decimals),
    Cause("a conjunction raises no error for a row that another part leaves out", _leaves_out_rows),
)
"""Why else the answers differ."""

REASONS = (CHOICE, *(refusal.reason for refusal in REFUSALS), *(cause.reason for cause in CAUSES))

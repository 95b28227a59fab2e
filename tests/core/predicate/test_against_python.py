"""Random filters on random rows give the answers of a plain Python reading of SQL."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given

from lance_ops.core.predicate import (
    ColumnQuery,
    ColumnStats,
    Equals,
    NotNull,
    Nulls,
    Predicate,
    Range,
    column_query,
    parse_filter,
    split_servable,
)
from lance_ops.core.predicate.tree.truth_set import TruthSet
from tests.core.predicate import reference
from tests.core.predicate.reference import SCHEMA, Case, Row

_TRUTH = {True: TruthSet.TRUE, False: TruthSet.FALSE, None: TruthSet.UNKNOWN}


@given(reference.cases(), reference.rows())
def test_mask_matches_the_python_reading_of_sql(case: Case, rows: list[Row]) -> None:
    table = reference.table(rows)
    predicate = parse_filter(case.sql, SCHEMA)
    expected = [case.answer(row) for row in rows]
    assert predicate.mask(table).to_pylist() == expected
    for batch in table.to_batches():
        assert predicate.mask(batch).to_pylist() == expected


@given(reference.cases(), reference.rows())
def test_a_predicate_survives_a_round_trip_through_sql_and_pickle(case: Case, rows: list[Row]) -> None:
    table = reference.table(rows)
    predicate = parse_filter(case.sql, SCHEMA)
    again = parse_filter(predicate.to_sql(), SCHEMA)
    assert again.mask(table).to_pylist() == predicate.mask(table).to_pylist()
    assert again.to_sql() == predicate.to_sql()
    assert pickle.loads(pickle.dumps(predicate)).to_sql() == predicate.to_sql()
    assert again.columns() == predicate.columns()


@given(reference.cases(), reference.rows())
def test_statistics_never_rule_out_truth_values_that_occur(case: Case, rows: list[Row]) -> None:
    table = reference.table(rows)
    predicate = parse_filter(case.sql, SCHEMA)
    seen = {_TRUTH[answer] for answer in predicate.mask(table).to_pylist()}
    for truncate in (False, True):
        stats = statistics_of(table, truncate)
        possible_truths = predicate.possible_truths(stats)
        assert all(truth in possible_truths for truth in seen)
        assert predicate.may_match(stats) or TruthSet.TRUE not in seen
        partial = {path: known for path, known in stats.items() if path not in predicate.columns()[:1]}
        assert all(truth in predicate.possible_truths(partial) for truth in seen)


@given(reference.cases(), reference.rows())
def test_an_index_query_selects_the_rows_that_match(case: Case, rows: list[Row]) -> None:
    table = reference.table(rows)
    predicate = parse_filter(case.sql, SCHEMA)
    query = column_query(predicate)
    if query is not None:
        expected = [answer is True for answer in predicate.mask(table).to_pylist()]
        assert answer_query(query, table) == expected


@given(reference.cases(), reference.cases(), reference.rows())
def test_the_served_and_remaining_conjuncts_together_select_the_matching_rows(
    left: Case, right: Case, rows: list[Row]
) -> None:
    table = reference.table(rows)
    predicate = parse_filter(f"({left.sql}) AND ({right.sql})", SCHEMA)
    served: list[ColumnQuery]
    served, rest = split_servable(predicate, column_query)
    matching = [answer is True for answer in predicate.mask(table).to_pylist()]
    parts = [answer_query(query, table) for query in served]
    if rest is not None:
        parts.append([answer is True for answer in rest.mask(table).to_pylist()])
    assert [all(answers) for answers in zip(*parts, strict=True)] == matching or not parts


def values_of(table: pa.Table, path: tuple[str, ...]) -> pa.Array:
    column = table.column(path[0]).combine_chunks()
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def statistics_of(table: pa.Table, truncate: bool) -> dict[str, ColumnStats]:
    """Return exact statistics or, with `truncate`, the first letters of texts and no NaN counts."""
    stats = {}
    for path in [(name,) for name in SCHEMA.names if name != "st"] + [("st", "x"), ("st", "With Space")]:
        values = values_of(table, path)
        plain = [value for value in values.to_pylist() if value is not None and value == value]
        low: Any = min(plain, default=None)
        high: Any = max(plain, default=None)
        nans = sum(1 for value in values.to_pylist() if isinstance(value, float) and math.isnan(value))
        cut = truncate and isinstance(high, str) and len(high) > 1
        stats[".".join(path)] = ColumnStats(
            pa.scalar(low[:1] if cut else low, values.type),
            pa.scalar(high[:1] if cut else high, values.type),
            values.null_count,
            len(values),
            None if truncate else nans,
            max_truncated=cut,
        )
    return stats


def answer_query(query: ColumnQuery, table: pa.Table) -> list[bool]:
    """Answer a query as an index would, by the order of the values alone."""
    return [_in_query(query, value) for value in values_of(table, query.column.path)]


def _in_query(query: ColumnQuery, value: pa.Scalar) -> bool:
    if not value.is_valid:
        return isinstance(query, Nulls)
    key = reference.order(value.as_py())
    match query:
        case Equals(_, values):
            return any(key == reference.order(wanted.as_py()) for wanted in values)
        case Range(_, lower, upper):
            above = lower is None or _beyond(key, reference.order(lower.value.as_py()), lower.inclusive)
            return above and (upper is None or _beyond(reference.order(upper.value.as_py()), key, upper.inclusive))
        case NotNull():
            return True
        case Nulls():
            return False


def _beyond(high: Any, low: Any, inclusive: bool) -> bool:
    return bool(high >= low if inclusive else high > low)


def test_equal_predicates_hash_alike() -> None:
    filters = ["i8 IN (1, 2)", "s LIKE 'a%b'", "NOT b"]
    predicates: list[Predicate] = [parse_filter(text, SCHEMA) for text in filters]
    assert len({*predicates, *(parse_filter(text, SCHEMA) for text in filters)}) == 3

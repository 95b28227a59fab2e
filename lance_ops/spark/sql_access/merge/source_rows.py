"""The rows that a merge reads where the source alone gives them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.spark.sql_access.expressions import ExpressionWriter, SessionRules, Side
from lance_ops.spark.sql_access.merge.clauses import Clause, Clauses
from lance_ops.spark.sql_access.merge.names import MergeNames
from lance_ops.spark.translation import arrow_schema_of

__all__ = ["SourceRows", "rows_of_source"]


@dataclass(frozen=True)
class SourceRows:
    """The rows to merge, by the columns that the merge writes, and the condition by which the library updates."""

    rows: DataFrame
    update_condition: str | None


def rows_of_source(
    names: MergeNames, frame: DataFrame, keys: dict[str, str], clauses: Clauses, rules: SessionRules
) -> SourceRows | None:
    """Return the rows to merge; None if a clause reads the table's row, or clauses need different rows."""
    if len(clauses.matched) > 1 or len(clauses.inserted) > 1 or clauses.updates_unmatched_by_source:
        return None
    matched, inserted = next(iter(clauses.matched), None), next(iter(clauses.inserted), None)
    values = _values(names, keys, matched, inserted)
    if values is None:
        return None
    rows, update_condition = frame.alias(names.source), None
    source_condition = _source_condition(names, clauses)
    if source_condition is not None:
        rows = rows.where(source_condition)
    elif inserted is not None and inserted.condition is not None:
        return None
    elif matched is not None and matched.condition is not None:
        if matched.action == "DELETE":
            return None
        update_condition = _update_condition(names, frame, matched.condition, values, rules)
        if update_condition is None:
            return None
    return SourceRows(rows.select(*(expr(text).alias(name) for name, text in values.items())), update_condition)


def _values(
    names: MergeNames, keys: dict[str, str], matched: Clause | None, inserted: Clause | None
) -> dict[str, str] | None:
    """Return the source's expression of each column that the merge writes, keys first; None if there is no such one."""
    updates = names.written(matched) if matched is not None and matched.action == "UPDATE" else None
    inserts = None if inserted is None else names.written(inserted)
    names.check_keys(keys, [] if updates is None else [updates], [] if inserts is None else [inserts])
    if not all(map(names.is_of_source, (*(updates or {}).values(), *(inserts or {}).values()))):
        return None
    if updates is not None and inserts is not None:
        for name in {**updates, **inserts}:
            one, other = (values.get(name, keys.get(name)) for values in (updates, inserts))
            if one is None or other is None or not names.is_same(one, other):
                return None
    return {**keys, **{name: text for name, text in (updates or inserts or {}).items() if name not in keys}}


def _source_condition(names: MergeNames, clauses: Clauses) -> str | None:
    """Return the condition on the source by which all clauses choose their rows; None if there is none.

    Beside a clause of unmatched rows of the table there is none: a row of the source that takes part in no other clause
    may still be the match of such a row.
    """
    conditions = {clause.condition for clause in (*clauses.matched, *clauses.inserted)}
    if len(conditions) != 1 or clauses.unmatched_by_source:
        return None
    condition = conditions.pop()
    return condition if condition is not None and names.is_of_source(condition) else None


def _update_condition(
    names: MergeNames, frame: DataFrame, condition: str, values: dict[str, str], rules: SessionRules
) -> str | None:
    """Write a condition on the rows of both sides; None if the library cannot evaluate it on the rows to merge.

    Of the source it sees the columns that are written under their own names. The join finds a mistake in a condition,
    too, so it is not told from such a condition here.
    """
    given = arrow_schema_of(frame.schema)
    seen = [given.field(name) for name, text in values.items() if names.source_column(text) == name]
    sides = {
        names.target: Side(names.schema.to_arrow_storage(), "target"),
        names.source: Side(pa.schema(seen), "source"),
    }
    try:
        return ExpressionWriter(sides, rules).write(condition)
    except (InvalidInput, UnsupportedFeature):
        return None

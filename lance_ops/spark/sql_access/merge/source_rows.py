"""The rows that a merge reads where the source alone gives them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.types import DataType

from lance_ops.spark.sql_access.merge.clauses import Clause, Clauses
from lance_ops.spark.sql_access.merge.names import MergeNames
from lance_ops.spark.translation import assigned_columns

__all__ = ["source_rows_to_merge"]


def source_rows_to_merge(
    names: MergeNames, frame: DataFrame, on: str, clauses: Clauses, types: Mapping[str, DataType]
) -> DataFrame | None:
    """Return the rows that the library's merge by key reads, by the columns that it writes, keys first.

    Returns None if ON has other conditions than keys, a clause reads the table's row or changes a key, or clauses need
    different rows. Values are cast to the `types` of their columns. Keys that delete rows are there once.
    """
    keys, has_others = names.keys_of_on(on)
    if not keys or has_others or clauses.updates_unmatched_by_source:
        return None
    if len(clauses.matched) > 1 or len(clauses.inserted) > 1:
        return None
    if clauses.all_matched_delete and clauses.inserted:  # several source rows may delete one row
        return None
    matched, inserted = next(iter(clauses.matched), None), next(iter(clauses.inserted), None)
    values = _values(names, keys, matched, inserted)
    if values is None:
        return None
    rows = frame.alias(names.source)
    conditions = {clause.condition for clause in (*clauses.matched, *clauses.inserted)} - {None}
    if conditions:
        condition = _condition_of_all(names, clauses)
        if condition is None:
            return None
        rows = rows.where(condition)
    chosen = rows.select(*(expr(text).alias(name) for name, text in values.items()))
    assigned = chosen.select(
        *assigned_columns("MERGE", chosen, {name: types[name] for name in types if name not in keys})
    )
    return assigned.distinct() if clauses.all_matched_delete else assigned


def _values(
    names: MergeNames, keys: dict[str, str], matched: Clause | None, inserted: Clause | None
) -> dict[str, str] | None:
    """Return the source's expression of each column that the merge writes, keys first; None if there is no such one."""
    updates = matched.values if matched is not None and matched.action == "UPDATE" else None
    inserts = None if inserted is None else inserted.values
    if not all(map(names.reads_no_target, (*(updates or {}).values(), *(inserts or {}).values()))):
        return None
    for name, key in keys.items():
        if any(not names.is_same(values[name], key) for values in (updates, inserts) if values and name in values):
            return None
        if inserts is not None and name not in inserts:
            return None
    if updates is not None and inserts is not None:
        for name in {**updates, **inserts}:
            one, other = (values.get(name, keys.get(name)) for values in (updates, inserts))
            if one is None or other is None or not names.is_same(one, other):
                return None
    return {**keys, **{name: text for name, text in (updates or inserts or {}).items() if name not in keys}}


def _condition_of_all(names: MergeNames, clauses: Clauses) -> str | None:
    """Return the condition on the source by which all clauses choose their rows; None if there is none.

    Beside a clause of unmatched rows of the table there is none: a row of the source that takes part in no other clause
    may still be the match of such a row.
    """
    conditions = {clause.condition for clause in (*clauses.matched, *clauses.inserted)}
    if len(conditions) != 1 or clauses.unmatched_by_source:
        return None
    condition = conditions.pop()
    return condition if condition is not None and names.reads_no_target(condition) else None

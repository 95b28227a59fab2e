"""Keep the history of rows in a table (a slowly changing dimension of type 2): each change closes a row and adds one.

A row of the table is a key, values, and from when to when they were true. The row that is true now has no end:

    id  price  valid_from  valid_to    current
    7   1.00   2026-01-01  2026-02-01  false
    7   1.20   2026-02-01  null        true

The rows to close and the rows to add are one source of one `merge_insert` on the key and `valid_from`: one version.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Self

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own name for it
from pyspark.sql.types import NullType, StructType

from lance_ops.api import ExecuteResult, LanceDataset
from lance_ops.core.errors import InvalidInput, RetryableConflict, TooManyConcurrentWriters, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.spark.on_spark import OnSpark
from lance_ops.spark.table_query import TableQuery
from lance_ops.spark.translation import (
    assigned_columns,
    check_half_floats,
    check_key_types,
    has_nanoseconds,
    is_nested,
    quoted_path,
    session_case_rule,
)
from lance_ops.transactions import exclusive_key_properties
from lance_ops.writing import retry_conflicts

__all__ = ["merge_history"]

_IS_CHANGE, _IS_LAST, _REASON = "__is_change", "__is_last", "__reason"
_PREVIOUS, _BEFORE, _NEXT = "__previous", "__before", "__next"
_RUN, _RUN_ENDS, _REPEATS = "__run", "__run_ends", "__repeats"


def merge_history(
    dataset: LanceDataset,
    changes: DataFrame,
    on: str | Sequence[str],
    *,
    valid_from: str = "valid_from",
    valid_to: str = "valid_to",
    current: str = "current",
    conflict_retries: int = 10,
    retry_timeout: timedelta = timedelta(seconds=30),
    runner: Runner | None = None,
) -> dict[str, int]:
    """Add changes to a table of histories as one version; return `num_added_rows` and `num_closed_rows`.

    `changes` has the columns `on`, `valid_from` and values. Names match by the session's case rule. Spark reads the
    changes several times, and each time they must give the same rows. A key may change several times. A change that the
    table has (a replay), or that repeats values that are true then, adds nothing; if none is left, there is no version.
    A key whose last row has ended may come back. Two runs at once by the same keys conflict. After a conflict all is
    computed again on the newest version. Spark casts a value to the type of its column before it compares it.

    Raises `InvalidInput`, with an example, for a key or a moment that is null, for a key with two values at one moment,
    and for another value before the row that is current. Raises `UnsupportedFeature` for nanoseconds, for half floats,
    for a nested value, a key or a moment whose type is not the table's, and `SchemaMismatch` for a value that cannot be
    assigned to its column. Raises `TooManyConcurrentWriters` when the retries
    are used up, or `retry_timeout` has passed since the first conflict. An attempt that runs is not ended.
    """
    given = _changes_by(changes, [on] if isinstance(on, str) else list(on), valid_from)
    used = runner or OnSpark(changes.sparkSession)

    def attempt(newest: Snapshot) -> ExecuteResult:
        if newest.version != dataset.version:
            dataset.checkout_latest()
        columns = _HistoryColumns.of(dataset.snapshot, given, current, valid_to)
        source = _source(dataset.snapshot, given, columns)
        merge = dataset.merge_insert(columns.identity).when_matched_update_all().when_not_matched_insert_all()
        try:
            rows = source if isinstance(used, OnSpark) else source.toArrow()
            properties = exclusive_key_properties(columns.keys)  # as another run may add a row of the same key
            return merge.conflict_retries(0).execute(rows, transaction_properties=properties, runner=used)
        except TooManyConcurrentWriters as lost:
            raise RetryableConflict(str(lost.__cause__)) from lost

    result = retry_conflicts(dataset.snapshot, attempt, conflict_retries, retry_timeout, from_first_conflict=True)
    return {"num_added_rows": result["num_inserted_rows"], "num_closed_rows": result["num_updated_rows"]}


@dataclass(frozen=True)
class _Changes:
    """Changes whose columns begin with those of the key, then the moment."""

    rows: DataFrame
    num_keys: int


def _changes_by(changes: DataFrame, keys: Sequence[str], valid_from: str) -> _Changes:
    """Put the columns in order; raise `InvalidInput` for a key or a moment that the changes do not have."""
    rule, first = session_case_rule(changes.sparkSession), []
    for name in (*keys, valid_from):
        found = rule.find(name, changes.columns)
        if found is None:
            raise InvalidInput(f"the changes have no column {name!r}; they have {', '.join(changes.columns)}")
        first.append(found)
    values = [name for name in changes.columns if name not in first]
    return _Changes(changes.select(*map(_column, [*first, *values])), len(keys))


@dataclass(frozen=True)
class _HistoryColumns:
    """The columns of a table of histories that a run reads and writes, in the table's spelling."""

    keys: tuple[str, ...]
    valid_from: str
    values: tuple[str, ...]
    current: str
    valid_to: str

    @classmethod
    def of(cls, snapshot: Snapshot, changes: _Changes, current: str, valid_to: str) -> Self:
        """Find the columns by the session's case rule; raise `InvalidInput` for one that the table does not have."""
        rule, names, found = session_case_rule(changes.rows.sparkSession), snapshot.schema.names, []
        for name in (*changes.rows.columns, current, valid_to):
            stored = rule.find(name, names)
            if stored is None:
                raise InvalidInput(f"{snapshot.uri} has no column {name!r}; it has {', '.join(names)}")
            found.append(stored)
        keys, (valid_from, *values) = found[: changes.num_keys], found[changes.num_keys : -2]
        return cls(tuple(keys), valid_from, tuple(values), *found[-2:])

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns by which a row of the table is told from others."""
        return (*self.keys, self.valid_from)

    @property
    def of_changes(self) -> tuple[str, ...]:
        """The columns that changes have, in their order."""
        return (*self.identity, *self.values)

    @property
    def all(self) -> tuple[str, ...]:
        """All columns."""
        return (*self.of_changes, self.current, self.valid_to)


def _source(snapshot: Snapshot, given: _Changes, columns: _HistoryColumns) -> DataFrame:
    """Return the rows to close, with their end, and the rows to add.

    The changes are put in order among the rows that the table has of their keys.
    """
    keys, valid_from, current, valid_to = columns.keys, columns.valid_from, columns.current, columns.valid_to
    changes = given.rows.toDF(*columns.of_changes)
    told = F.struct(F.lit(True), *map(_column, columns.values))
    stored = TableQuery(changes.sparkSession, snapshot).select(*columns.all).load()
    _check_columns(snapshot, stored, changes, columns)
    # In the types of the table, because a value is compared with the one that the table has of it.
    types = {name: stored.schema[name].dataType for name in columns.values}
    changes = changes.select(*assigned_columns("a history", changes, types))
    known = stored.join(changes.select(*map(_column, keys)).distinct(), list(keys), "left_semi").select(
        *map(_column, columns.all)
    )
    no_end = F.lit(None).cast(stored.schema[valid_to].dataType)
    new = changes.withColumn(current, F.lit(False)).withColumn(valid_to, no_end)
    every = known.withColumn(_IS_CHANGE, F.lit(False)).unionByName(new.withColumn(_IS_CHANGE, F.lit(True)))
    in_order = Window.partitionBy(*map(_column, keys)).orderBy(_column(valid_from), F.col(_IS_CHANGE))
    # A run begins with each known row, and with each change that has other values than the row before it.
    is_same = F.col(_IS_CHANGE) & F.col(_PREVIOUS).eqNullSafe(told)
    up_to_here = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    marked = every.withColumn(_PREVIOUS, F.lag(told).over(in_order)).withColumn(
        _RUN, F.count(F.when(~is_same, True)).over(up_to_here)
    )
    in_run = Window.partitionBy(*map(_column, [*keys, _RUN])).orderBy(_column(valid_from), F.col(_IS_CHANGE))
    ended = marked.withColumn(_RUN_ENDS, F.first(_column(valid_to)).over(in_run))
    repeats = is_same & (
        F.col(_RUN_ENDS).isNull()
        | (_column(valid_from) < F.col(_RUN_ENDS))
        | (F.lag(_column(valid_from)).over(in_run) >= F.col(_RUN_ENDS))  # the change before it came back
    )
    kept = (
        ended.withColumn(_REPEATS, repeats)
        .where(~F.col(_REPEATS))
        .withColumn(_BEFORE, F.lag(_column(valid_from)).over(in_order))
        .withColumn(_NEXT, F.lead(_column(valid_from)).over(in_order))
        .withColumn(_IS_LAST, F.coalesce(F.lead(_IS_CHANGE).over(in_order), F.lit(True)))
    )
    _check(kept.where(F.col(_IS_CHANGE)), columns.identity)
    ends_earlier = (_column(current) & F.col(_NEXT).isNotNull()) | (F.col(_NEXT) < _column(valid_to))
    written = kept.where(F.col(_IS_CHANGE) | (F.col(_IS_LAST) & ends_earlier))
    ends = [F.col(_NEXT).isNull().alias(current), F.col(_NEXT).alias(valid_to)]
    return written.select(*map(_column, columns.of_changes), *ends)


def _check_columns(snapshot: Snapshot, stored: DataFrame, changes: DataFrame, columns: _HistoryColumns) -> None:
    """Raise `UnsupportedFeature` for columns that Spark reads or compares otherwise than the merge.

    The merge would then add a row where Spark found one to close.
    """
    schema, identity = snapshot.schema, columns.identity
    for name in columns.all:
        if has_nanoseconds(schema.field(name)):
            raise UnsupportedFeature(f"a history with column {name!r}: Spark cuts its nanoseconds (store microseconds)")
    check_half_floats("a history", schema, identity)
    for name in columns.values:
        kind, given = stored.schema[name].dataType, changes.schema[name].dataType
        if any(pa.types.is_float16(node.arrow_type) for node in schema.field(name).walk()):
            raise UnsupportedFeature(
                f"a history with column {name!r}: Spark reads its half floats as float (store those)"
            )
        if is_nested(kind) and not isinstance(given, NullType) and given.simpleString() != kind.simpleString():
            raise UnsupportedFeature(
                f"a history with column {name!r}, which is {kind.simpleString()} in the table and "
                f"{given.simpleString()} in the changes (cast it to {kind.simpleString()})"
            )
    types = {name: stored.schema[name].dataType for name in identity}
    check_key_types("a history", StructType([changes.schema[name] for name in identity]), types)


def _check(changes: DataFrame, identity: tuple[str, ...]) -> None:
    """Raise `InvalidInput` for a change that cannot be the next one of its key. `identity` ends with the moment."""
    has_null = F.greatest(*(_column(name).isNull() for name in identity))
    at_once = F.coalesce(F.col(_BEFORE) == _column(identity[-1]), F.lit(False))
    reason = (
        F.when(has_null, "a null in the key or the moment")
        .when(at_once, "two values at one moment")
        .when(~F.col(_IS_LAST), "another value before the row that is current")
    )
    wrong = changes.select(*map(_column, identity), reason.alias(_REASON)).where(F.col(_REASON).isNotNull()).head(1)
    if wrong:
        shown = ", ".join(f"{name} = {wrong[0][name]!r}" for name in identity)
        raise InvalidInput(f"a history grows at its end, and a change has {wrong[0][_REASON]}: {shown}")


def _column(name: str) -> Column:
    return F.col(quoted_path(name))

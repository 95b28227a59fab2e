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

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own name for it

from lance_ops.api import ExecuteResult, LanceDataset
from lance_ops.core.errors import InvalidInput, RetryableConflict, TooManyConcurrentWriters, UnsupportedFeature
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.spark.on_spark import OnSpark
from lance_ops.spark.table_query import TableQuery
from lance_ops.spark.translation import check_half_floats, check_key_types, has_nanoseconds, quoted_path
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

    `changes` has the columns `on`, `valid_from` and values. Spark reads it several times, and each time it must give
    the same rows. A key may change several times. A change that the table has (a replay), or that repeats values that
    are true then, adds nothing; if none is left, there is no version. A key whose last row has ended may come back. Two
    runs at once by the same keys conflict. After a conflict all is computed again on the newest version.

    Raises `InvalidInput`, with an example, for a key or a moment that is null, for a key with two values at one moment,
    and for another value before the row that is current. Raises `UnsupportedFeature` for nanoseconds, for a key of half
    floats, and for a key or a moment whose type is not the table's. Raises `TooManyConcurrentWriters` when the retries
    are used up, or `retry_timeout` has passed since the first conflict. An attempt that runs is not ended.
    """
    keys = [on] if isinstance(on, str) else list(on)
    for name in (*keys, valid_from):
        if name not in changes.columns:
            raise InvalidInput(f"the changes have no column {name!r}; they have {', '.join(changes.columns)}")
    used = runner or OnSpark(changes.sparkSession)

    def attempt(newest: Snapshot) -> ExecuteResult:
        if newest.version != dataset.version:
            dataset.checkout_latest()
        source = _source(dataset, changes, keys, valid_from, valid_to, current)
        merge = dataset.merge_insert([*keys, valid_from]).when_matched_update_all().when_not_matched_insert_all()
        try:
            rows = source if isinstance(used, OnSpark) else source.toArrow()
            properties = exclusive_key_properties(keys)  # as another run may add a row of the same key
            return merge.conflict_retries(0).execute(rows, transaction_properties=properties, runner=used)
        except TooManyConcurrentWriters as lost:
            raise RetryableConflict(str(lost.__cause__)) from lost

    result = retry_conflicts(dataset.snapshot, attempt, conflict_retries, retry_timeout, from_first_conflict=True)
    return {"num_added_rows": result["num_inserted_rows"], "num_closed_rows": result["num_updated_rows"]}


def _source(
    dataset: LanceDataset, changes: DataFrame, keys: list[str], valid_from: str, valid_to: str, current: str
) -> DataFrame:
    """Return the rows to close, with their end, and the rows to add.

    The changes are put in order among the rows that the table has of their keys.
    """
    named = [*keys, valid_from, *(name for name in changes.columns if name not in (*keys, valid_from))]
    told = F.struct(F.lit(True), *(_column(name) for name in named[len(keys) + 1 :]))
    table = TableQuery(changes.sparkSession, dataset.snapshot).select(*map(_quoted, [*named, current, valid_to]))
    stored = table.load()
    _check_columns(table, stored, changes, [*keys, valid_from])
    known = stored.join(changes.select(*map(_column, keys)).distinct(), keys, "left_semi").select(
        *map(_column, [*named, current, valid_to])
    )
    no_end = F.lit(None).cast(stored.schema[valid_to].dataType)
    new = changes.select(*map(_column, named)).withColumn(current, F.lit(False)).withColumn(valid_to, no_end)
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
    _check(kept.where(F.col(_IS_CHANGE)), keys, valid_from)
    ends_earlier = (_column(current) & F.col(_NEXT).isNotNull()) | (F.col(_NEXT) < _column(valid_to))
    written = kept.where(F.col(_IS_CHANGE) | ends_earlier)
    ends = [F.col(_NEXT).alias(valid_to), F.col(_NEXT).isNull().alias(current)]
    return written.select(*map(_column, named), *ends)


def _check_columns(table: TableQuery, stored: DataFrame, changes: DataFrame, keys: list[str]) -> None:
    """Raise `UnsupportedFeature` for columns that Spark reads or compares otherwise than the merge.

    The merge would then add a row where Spark found one to close. The table's columns begin with `keys`.
    """
    schema, columns = table.snapshot.schema, table.columns or ()
    for name in columns:
        if has_nanoseconds(schema.field(name)):
            raise UnsupportedFeature(f"a history with column {name!r}: Spark cuts its nanoseconds (store microseconds)")
    check_half_floats("a history", schema, columns[: len(keys)])
    types = {field.name: field.dataType for field in stored.select(*map(_column, keys)).schema}
    check_key_types("a history", changes.select(*map(_column, keys)).schema, types)


def _check(changes: DataFrame, keys: list[str], valid_from: str) -> None:
    """Raise `InvalidInput` for a change that cannot be the next one of its key."""
    named = [*keys, valid_from]
    has_null = F.greatest(*(_column(name).isNull() for name in named))
    at_once = F.coalesce(F.col(_BEFORE) == _column(valid_from), F.lit(False))
    reason = (
        F.when(has_null, "a null in the key or the moment")
        .when(at_once, "two values at one moment")
        .when(~F.col(_IS_LAST), "another value before the row that is current")
    )
    wrong = changes.select(*map(_column, named), reason.alias(_REASON)).where(F.col(_REASON).isNotNull()).head(1)
    if wrong:
        shown = ", ".join(f"{name} = {wrong[0][name]!r}" for name in named)
        raise InvalidInput(f"a history grows at its end, and a change has {wrong[0][_REASON]}: {shown}")


def _column(name: str) -> Column:
    return F.col(quoted_path(name))


def _quoted(name: str) -> str:
    return f"`{name}`"

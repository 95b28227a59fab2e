"""Change the rows of a version that Spark chose, in the tasks that have their new values, and commit once."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame

from lance_ops.blobs import with_blobs_as
from lance_ops.changing import ChosenRowsOutcome, ChosenRowsTask, commit_chosen
from lance_ops.changing.merge_insert import MergeCounts
from lance_ops.core.json import text_schema
from lance_ops.core.records import dataclass
from lance_ops.core.schema import CaseRule
from lance_ops.snapshot import Snapshot
from lance_ops.spark.on_spark import OnSpark
from lance_ops.spark.running import map_rows
from lance_ops.spark.sql_access.expressions import unused_name
from lance_ops.spark.sql_access.statement import Statement
from lance_ops.spark.translation import fit, with_moments_of

__all__ = ["change_rows"]


def change_rows(
    statement: Statement,
    snapshot: Snapshot,
    rows: DataFrame,
    updated: Iterable[str],
    verb: str,
    *,
    on: Iterable[str] = (),
    predicate: str = "",
) -> MergeCounts:
    """Update, delete and insert rows; return their numbers.

    The first column of `rows` says what happens to a row, the second has the address of a row of the version, and the
    others have values by the table's column; `ChosenRowsTask` says more of them, of `updated` and of `on`. `verb` names
    the job, and `predicate` is the condition of a mere deletion. Raises as `commit_chosen` does, and `SchemaMismatch`
    naming a column whose value does not fit.
    """
    names = rows.columns[2:]
    unused = unused_name(names)
    rows = rows.toDF(unused, f"{unused}_", *names)  # columns are found by name on the way
    stored = [with_blobs_as(snapshot.schema.field(name), pa.large_binary()) for name in names]
    types = text_schema(pa.schema(stored), pa.string())
    change = ChosenRowsTask.of(snapshot, updated, _Fit(types, statement.case_rule), on)
    fitting = with_moments_of(rows, snapshot.schema.to_arrow_storage(), statement.case_rule)

    def discard(outcome: ChosenRowsOutcome) -> None:
        outcome.pending(snapshot).abandon()

    job = ChosenRowsTask.job(verb, snapshot)
    if isinstance(statement.runner, OnSpark):
        outcomes = map_rows(fitting, change, job, discard, statement.runner.on_progress)
    else:
        outcomes = statement.runner.map(change, [fitting.toArrow().to_batches()], job, discard)
    return commit_chosen(snapshot, change, outcomes, predicate, statement.runner)[1]


@dataclass(frozen=True)
class _Fit:
    """Casts the columns of a batch to the types that a writer takes; fields of structs match by the case rule."""

    types: pa.Schema
    case_rule: CaseRule

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return fit(batch, pa.schema([self.types.field(name) for name in batch.schema.names]), self.case_rule)

"""Write a DataFrame by Spark's tasks, after the write was planned in this process.

Spark plans a write in a Python process of its own. It reports what does not fit there as an `AnalysisException` with a
stack in its text. `plan_write` makes the same checks in the driver first, and raises the errors of this library. Spark
then plans the write again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from lance_ops.spark.data_source import SourceOptions, plan_write
from lance_ops.spark.private_options import private_format
from lance_ops.spark.translation import session_case_rule

__all__ = ["write_planned"]


def write_planned(
    session: SparkSession,
    frame: DataFrame,
    uri: str,
    storage_options: Mapping[str, str],
    options: Mapping[str, str] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write a frame as one version, with the session's case rule and these options of `format("lance")`.

    Raises `SchemaMismatch` naming a column that does not fit the table, and what `plan_write` raises.
    """
    given = {"case_sensitive": str(session_case_rule(session).value).lower(), **(options or {})}
    parsed = SourceOptions.parse({**given, "path": uri})
    shape = to_arrow_schema(frame.schema, timezone="UTC")
    plan_write(replace(parsed, storage_options=dict(storage_options)), shape, overwrite=overwrite)
    writer = frame.write.format(private_format(session, storage_options)).options(**given)
    writer.mode("overwrite" if overwrite else "append").save(uri)

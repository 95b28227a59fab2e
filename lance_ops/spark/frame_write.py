"""Write a DataFrame as one version of a table: Spark's workers write fragments, and this process plans and commits.

    dataset = write(df, "/data/flights.lance")                                     # append, or create
    dataset = write(df, uri, "overwrite", replace_where="day = '2026-01-31'", storage_options={…})

`df.write.format("lance")` executes the same plan. For each of its steps Spark starts a Python process that no session's
setting reaches, so a first write waits for four of them. Here the workers are the only Python processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import Literal, get_args

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from lance_ops.api import LanceDataset, dataset
from lance_ops.committers import open_root
from lance_ops.core.errors import InvalidInput, WrongType
from lance_ops.core.redaction import public_uri
from lance_ops.runners import Job
from lance_ops.spark.data_source import SourceOptions, WritePlan, plan_write
from lance_ops.spark.jobs import map_rows
from lance_ops.spark.translation import session_case_rule
from lance_ops.transactions import remove_files_of_job

__all__ = ["write"]

Mode = Literal["append", "overwrite", "create"]
_VERBS: Mapping[Mode, str] = {"append": "append to", "overwrite": "overwrite", "create": "create"}


def write(
    frame: DataFrame,
    uri: str | PathLike[str],
    mode: Mode = "append",
    *,
    storage_options: Mapping[str, str] | None = None,
    **options: str | int | bool,
) -> LanceDataset:
    """Write a DataFrame as one version, and return the dataset at that version.

    `append` and `overwrite` create a table that is not there yet; `create` refuses one that is. `options` are those of
    a write with `format("lance")`, such as `replace_where`, `schema_mode`, `batch` and `max_rows_per_file`; names with
    dots are given as `**{"v.arrow.fixed-size-list.size": 512}`. Columns match by the session's case rule unless
    `case_sensitive` says otherwise. No plan of Spark shows `storage_options`. A write whose `batch` the table has does
    nothing, and returns the newest version.

    Raises `DatasetAlreadyExists` in mode `create`, `SchemaMismatch` naming a column that does not fit, `InvalidInput`
    for an unknown mode or option, and what a commit raises. Errors of the DataFrame's own plan are Spark's. After an
    error or an interrupt no file of the write stays, unless nobody knows whether it was committed.
    """
    plan = _plan(frame, fspath(uri), mode, storage_options or {}, options)
    path, given = plan.options.path, plan.options.storage_options
    if plan.done:
        return dataset(path, storage_options=given)
    remove = partial(remove_files_of_job, open_root(path, given).store)
    job = Job.on(_VERBS[mode], public_uri(path), plan.read_version, remove_files=remove)
    written = map_rows(frame, plan.write, job, plan.discard)
    version = plan.commit([fragment for fragments in written for fragment in fragments])
    return dataset(path, version, storage_options=given)


def _plan(
    frame: DataFrame, path: str, mode: Mode, storage_options: Mapping[str, str], options: Mapping[str, str | int | bool]
) -> WritePlan:
    if mode not in get_args(Mode):
        raise InvalidInput(f"mode {mode!r}: a write is one of {', '.join(get_args(Mode))}")
    texts = {"case_sensitive": session_case_rule(frame.sparkSession).value, **options}
    parsed = SourceOptions.parse({**{name: _text(name, value) for name, value in texts.items()}, "path": path})
    parsed = replace(parsed, storage_options={**parsed.storage_options, **storage_options})
    shape = to_arrow_schema(frame.schema, timezone="UTC")
    return plan_write(parsed, shape, overwrite=mode == "overwrite", create=mode == "create", batch=parsed.batch)


def _text(name: str, value: object) -> str:
    """Return an option as Spark would pass it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise WrongType(f"option {name!r} is a text, a whole number, True or False, not {value!r}")
    return str(value)

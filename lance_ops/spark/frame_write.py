"""Write a DataFrame into a table: Spark's workers write fragments, and the driver plans and commits.

Workers also write a column again that gets a longer type, and find the rows that `replace_where` replaces.

    dataset = write(df, "/data/flights.lance")                                     # append, or create
    dataset = write(df, uri, "overwrite", replace_where="day = '2026-01-31'", storage_options={…})

`df.write.format("lance")` executes the same plan. For it Spark starts three more Python processes: to find the format,
to plan and to commit. No setting of the session has them forked from a process that has loaded this library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import get_args

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lance_ops.api import LanceDataset, dataset
from lance_ops.committers import open_root
from lance_ops.core.errors import InvalidInput, WrongType
from lance_ops.core.json import text_schema
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import public_uri
from lance_ops.core.schema import SchemaMode
from lance_ops.runners import Job, ReportProgress
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source import SourceOptions, WriteMode, plan_write
from lance_ops.spark.running import WorkerTasks, map_rows
from lance_ops.spark.session_kind import check_is_running
from lance_ops.spark.translation import arrow_schema_of, cast_to, session_case_rule, session_types
from lance_ops.transactions import remove_files_of_job

__all__ = ["Written", "create_table", "write", "write_with"]

_VERBS: Mapping[WriteMode, str] = {"append": "append to", "overwrite": "overwrite", "create": "create"}


@dataclass(frozen=True)
class Written:
    """The version that a write has made; None if it made none."""

    options: SourceOptions
    version: int | None

    def opened(self) -> LanceDataset:
        """Open that version, or the newest one. Raises `VersionNotFound` if clean-up has removed it meanwhile."""
        return dataset(self.options.path, self.version, storage_options=self.options.storage_options)


def write(
    frame: DataFrame,
    uri: str | PathLike[str],
    mode: WriteMode = "append",
    *,
    storage_options: Mapping[str, str] | None = None,
    on_progress: ReportProgress | None = None,
    **options: str | int | bool,
) -> LanceDataset:
    """Write the rows of a DataFrame as one version, and return the dataset at that version.

    If `schema_mode="add"` adds or widens columns, a version before that of the rows does so. It stays if the rows fail.

    `append` and `overwrite` create a table that is not there yet; `create` refuses one that is. `options` are those of
    a write with `format("lance")`, such as `replace_where`, `schema_mode`, `batch` and `max_rows_per_file`; names with
    dots are given as `**{"v.arrow.fixed-size-list.size": 512}`. Columns match by the session's case rule unless
    `case_sensitive` says otherwise. No plan of Spark shows `storage_options`. A write whose `batch` the table has does
    nothing, and returns the newest version. A relative path begins in this process's folder. `on_progress` is called
    twice a second, in the calling thread, with how many of Spark's tasks are done.

    Raises `DatasetAlreadyExists` in mode `create`, `SchemaMismatch` naming a column that does not fit, `InvalidInput`
    for an unknown mode or option, and what a commit raises. Errors of the DataFrame's own plan and of the cluster are
    Spark's. After an error or an interrupt the driver removes the files of the write, unless the commit may have
    happened. Clean-up removes what a worker writes after that, and files of lost attempts.
    """
    texts = {name: _text(name, value) for name, value in options.items()}
    given = storage_options or {}
    written = write_with(frame, fspath(uri), mode, texts, given, grows_by='schema_mode="add"', on_progress=on_progress)
    return written.opened()


def write_with(
    frame: DataFrame,
    uri: str,
    mode: WriteMode,
    options: Mapping[str, str],
    storage_options: Mapping[str, str],
    *,
    grows_by: str | None = None,
    exact: bool = False,
    computed_from: Snapshot | None = None,
    on_progress: ReportProgress | None = None,
) -> Written:
    """Write a DataFrame as `write` does, with options as text. Their names may be anything that a user has written.

    Nothing is read after the commit: an error of it would look like one of the write, which must not run again then.
    `grows_by` is the setting, as the user writes it, that lets the schema grow; errors name it where that helps. With
    `exact` a number that the table's type would round is refused. `computed_from` is as in `plan_write`.
    """
    if mode not in get_args(WriteMode):
        raise InvalidInput(f"mode {mode!r}: a write is one of {', '.join(get_args(WriteMode))}")
    check_is_running(frame.sparkSession)
    parsed = _parse(frame.sparkSession, uri, options, storage_options)

    def types_for(table: pa.Schema) -> StructType:
        return session_types(frame.schema, table, parsed.case_rule)

    plan = plan_write(
        parsed,
        arrow_schema_of(frame.schema),
        mode,
        grows_by=grows_by,
        exact=exact,
        computed_from=computed_from,
        after_casts=lambda table: arrow_schema_of(types_for(table)),
    )
    path, given = plan.options.path, plan.options.storage_options
    if plan.done:
        return Written(plan.options, None)
    remove = partial(remove_files_of_job, open_root(path, given).store)
    job = Job.on(_VERBS[mode], public_uri(path), plan.read_version, remove_files=remove)
    fitting = cast_to(frame, types_for(text_schema(plan.schema.to_arrow_storage(), pa.string())))
    written = map_rows(fitting, plan.write, job, plan.discard, on_progress)
    fragments = [fragment for of_task in written for fragment in of_task]
    version = plan.commit(fragments, WorkerTasks(frame.sparkSession, on_progress=on_progress))
    return Written(plan.options, version)


def create_table(
    session: SparkSession,
    columns: StructType,
    uri: str,
    mode: WriteMode,
    options: Mapping[str, str],
    storage_options: Mapping[str, str],
) -> None:
    """Make a table of declared columns without rows, in one version. Columns that are not nullable stay so.

    In mode `overwrite` a table that is there gets the declared columns as they are, unless `schema_mode` says
    otherwise. Raises what `write` raises.
    """
    parsed = _parse(session, uri, options, storage_options)
    if mode == "overwrite" and parsed.schema_mode is None:
        parsed = replace(parsed, schema_mode=SchemaMode.OVERWRITE)
    plan_write(parsed, arrow_schema_of(columns), mode, keep_not_null=True).commit([])


def _parse(
    session: SparkSession, uri: str, options: Mapping[str, str], storage_options: Mapping[str, str]
) -> SourceOptions:
    names = {name.lower() for name in options}
    if "path" in names:
        raise InvalidInput("option 'path': the table is named already")
    texts = {"path": uri, **options}
    if "case_sensitive" not in names:
        texts["case_sensitive"] = str(session_case_rule(session).value).lower()
    parsed = SourceOptions.parse(texts)
    return replace(parsed, storage_options={**parsed.storage_options, **storage_options})


def _text(name: str, value: object) -> str:
    """Return an option as Spark would pass it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise WrongType(f"option {name!r} is a text, a whole number, True or False, not {value!r}")
    return str(value)

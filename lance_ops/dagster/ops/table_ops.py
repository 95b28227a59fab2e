"""Build an op on a dataset: its name, order, pool and resource, and the recording of the versions that it commits."""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dagster as dg

from lance_ops.api import LanceDataset
from lance_ops.core.errors import DatasetNotFound, LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.dagster.attempts import Attempt
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.failures import retrying
from lance_ops.dagster.head import report_versions
from lance_ops.dagster.opening import open_for_run, open_readable, open_snapshot
from lance_ops.dagster.runners import LanceRunner, runner_key
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.verbs import AbsentTable, Target

__all__ = ["START", "Work", "table_op"]

START = "start"
"""The input that orders an op after another one; it carries no value."""


@dataclass(frozen=True)
class Work:
    """The context of an op: the declared dataset, opened at its newest version when the op began, if it exists.

    `token` names the step's work for its commit, if the op carries one. `attempted_since` is when an earlier attempt
    began that may have done the work; None if there is none.
    """

    context: dg.OpExecutionContext
    config: DatasetConfig
    opened: Snapshot | None
    token: str | None = None
    attempted_since: datetime | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The opened version. Raises `DatasetNotFound` if no batch has created the dataset yet."""
        if self.opened is None:
            raise DatasetNotFound(f"{self.target.uri}: no dataset is there")
        return self.opened

    @property
    def target(self) -> Target:
        """What verbs are planned on: the opened version, or the place where the dataset will be."""
        if self.opened is not None:
            return LanceDataset.of(self.opened)
        location = self.config.table()
        return AbsentTable.at(location.uri, location.storage_options)

    @property
    def runner(self) -> Runner:
        """The run's runner; it is started when first used, and logs how far a long job is."""
        resource: LanceRunner = getattr(self.context.resources, runner_key(self.config))
        return resource.logging_to(self.context.log)


def table_op(
    config: DatasetConfig,
    name: str,
    description: str,
    work: Callable[[Work, Any], Mapping[str, Any]],
    config_class: type[dg.Config] | None = None,
    *,
    opens_damaged: bool = False,
    creates_table: bool = False,
    only_reads: bool = False,
    carries_token: bool = False,
) -> dg.OpDefinition:
    """Return an op that opens the dataset, calls `work`, records new versions, and shows the metadata of `work`.

    With `opens_damaged`, it opens the newest version that can be read, if the newest one cannot. With `creates_table`,
    the dataset need not exist. With `only_reads`, the op does not wait for the dataset's writers. With `carries_token`,
    if an earlier attempt committed the work, this one only records the versions.
    """
    names = DatasetNames(config.name)
    open_newest = open_for_run if creates_table else open_readable if opens_damaged else open_snapshot

    def compute(context: dg.OpExecutionContext) -> None:
        started = datetime.now(UTC)
        attempt = Attempt.of(context, json.dumps(context.op_config, sort_keys=True))
        with retrying():
            snapshot = open_newest(config)
            committed = attempt.committed_version(snapshot) if carries_token and snapshot else None
        before = committed - 1 if committed else snapshot.version if snapshot else 0

        def report() -> str:
            look = partial(open_newest, config) if opens_damaged or snapshot is None else snapshot.latest
            return _report(context, config, look, before, started)

        if committed:
            context.log.info("an earlier attempt committed version %s, so the work is not done again", committed)
            metadata: dict[str, Any] = {"lance/committed_before": committed}
        else:
            with retrying():
                # Dagster checks only the shape of the launch's configuration; the class checks its values here.
                options = config_class(**context.op_config) if config_class else None
                begun = Work(
                    context, config, snapshot, attempt.token if carries_token else None, attempt.attempted_since
                )
                try:
                    metadata = dict(work(begun, options))
                except dg.Failure:  # it may have committed a version all the same
                    report()
                    raise
        metadata["lance/new_versions"] = report()
        context.add_output_metadata(metadata)

    return dg.op(
        name=names.op(name),
        description=description,
        ins={START: dg.In(dg.Nothing)},
        out=dg.Out(dg.Nothing),
        config_schema=config_class.to_config_schema().as_field() if config_class else None,
        required_resource_keys={runner_key(config)},
        pool=None if only_reads else names.pool,
        tags={"dagster/kind": "lance"},
    )(compute)


def _report(
    context: dg.OpExecutionContext,
    config: DatasetConfig,
    open_newest: Callable[[], Snapshot | None],
    since: int,
    started: datetime,
) -> str:
    """Record the versions after `since`; return them as text.

    The work is done, so an error must not make Dagster attempt the step again: the version sensor records the versions.
    """
    try:
        newest = open_newest()
        reported = report_versions(context, config, newest, since, started) if newest else ()
    except LanceOpsError as error:
        context.log.warning("the new versions are not recorded yet, the version sensor will do so: %s", error)
        return "unknown: the version sensor will record them"
    return ", ".join(map(str, reported)) or "none"

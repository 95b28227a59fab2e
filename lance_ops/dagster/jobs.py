"""Build the jobs of a dataset: one for each verb and each question, for all checks, and for the whole maintenance.

All steps of a job run in one process, because one Spark session for each step would cost more than the steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head import INTACT
from lance_ops.dagster.ops import (
    START,
    health_op,
    launch,
    question_ops,
    verb_op,
    verdict_op,
)
from lance_ops.verbs import ALL_VERBS, Cleanup, Compact, Reindex, Verify

__all__ = ["build_jobs", "build_schedules", "checks_job", "ingest_job"]

_MAINTENANCE = ("health", "compact", "reindex", "cleanup", "verdict")


def build_jobs(config: DatasetConfig) -> list[dg.JobDefinition | dg.UnresolvedAssetJobDefinition]:
    """Return every job of a dataset: `<dataset>_ingest`, `<dataset>_maintenance`, and others by verb and question."""
    # Dagster allows one op under each name, so the maintenance job runs the same ops as the verbs' own jobs.
    ops = {verb.name: verb_op(config, verb) for verb in ALL_VERBS}
    jobs: list[dg.JobDefinition | dg.UnresolvedAssetJobDefinition] = [checks_job(config)]
    if config.raw is not None:
        jobs.append(ingest_job(config))
    jobs.append(_maintenance_job(config, ops))
    jobs += [_job_of(config, name, op.description, {name: op}) for name, op in (ops | question_ops(config)).items()]
    return jobs


def ingest_job(config: DatasetConfig) -> dg.UnresolvedAssetJobDefinition:
    """Return the job that ingests batches and then runs the head's checks, but for the one that reads files again."""
    names = DatasetNames(config.name)
    checks = dg.AssetSelection.checks_for_assets(names.head) - dg.AssetSelection.checks(
        dg.AssetCheckKey(names.head, INTACT)
    )
    selection = dg.AssetSelection.assets(names.batches) | checks
    return dg.define_asset_job(
        names.of("ingest"),
        selection=selection,
        description=f"Ingest batches of raw files into {config.name}, as one commit.",
        executor_def=dg.in_process_executor,
    )


def checks_job(config: DatasetConfig) -> dg.UnresolvedAssetJobDefinition:
    """Return the job that runs the head's checks."""
    names = DatasetNames(config.name)
    return dg.define_asset_job(
        names.of("checks"),
        selection=dg.AssetSelection.checks_for_assets(names.head),
        description=f"Check the newest version of {config.name}.",
        executor_def=dg.in_process_executor,
    )


def build_schedules(config: DatasetConfig) -> list[dg.ScheduleDefinition]:
    """Return the schedules of maintenance and of verification, where the dataset declares them.

    Neither asks for a dry run.
    """
    names = DatasetNames(config.name)
    for_real = {"verify": dg.RunConfig(ops={Verify.name: launch(Verify(), dry_run=False)})}
    crons = {"maintenance": config.maintenance.cron, "verify": config.maintenance.verification.cron}
    return [
        dg.ScheduleDefinition(
            name=names.of(f"{job}_schedule"),
            job_name=names.of(job),
            cron_schedule=cron,
            run_config=for_real.get(job),
            description=f"Launches {names.of(job)}, which is then no dry run.",
            execution_timezone=config.maintenance.timezone,
            default_status=dg.DefaultScheduleStatus.RUNNING,
        )
        for job, cron in crons.items()
        if cron is not None
    ]


def _maintenance_job(config: DatasetConfig, verbs: Mapping[str, dg.OpDefinition]) -> dg.JobDefinition:
    """Return the job that measures, compacts, reindexes, cleans up and judges, in this order.

    In this job no verb is a dry run: the declared policy decides what it removes, and tagged versions stay.
    """
    ops = {**verbs, "health": health_op(config), "verdict": verdict_op(config)}
    steps = (Compact(), Reindex(), Cleanup())
    for_real = dg.RunConfig(ops={verb.name: launch(verb, dry_run=False) for verb in steps})
    description = f"Measure, compact, index and clean up {config.name} by its declared policy, and record verdicts."
    return _job_of(config, "maintenance", description, {step: ops[step] for step in _MAINTENANCE}, for_real)


def _job_of(
    config: DatasetConfig,
    what: str,
    description: str | None,
    ops: Mapping[str, dg.OpDefinition],
    run_config: dg.RunConfig | None = None,
) -> dg.JobDefinition:
    """Return a job that runs ops one after the other; its configuration names each by its short name."""
    before: list[str | None] = [None, *ops]
    dependencies = {
        dg.NodeInvocation(op.name, alias=step): {START: dg.DependencyDefinition(previous)} if previous else {}
        for previous, (step, op) in zip(before, ops.items(), strict=False)
    }
    graph = dg.GraphDefinition(
        name=DatasetNames(config.name).of(what),
        description=description,
        node_defs=list(ops.values()),
        dependencies=dependencies,
    )
    return graph.to_job(executor_def=dg.in_process_executor, config=run_config)

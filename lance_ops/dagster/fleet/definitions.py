"""Build the asset, the check, the job, the schedule and the alerts of a declared fleet.

A materialization of the asset is a night: what was done to each table, and what it saved. Attempts of one run share the
night's budget: its own retries, and re-executions of a run that did not succeed.

A dry run judges nothing: it neither pays nor verifies, so the check keeps the result of the newest night.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

from collections.abc import Iterator
from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.dagster.alerts import TOLD_BY_CHECK, Watched, build_alert_sensors
from lance_ops.dagster.attempts import first_run
from lance_ops.dagster.declaration import DatasetNames
from lance_ops.dagster.evaluations import causes_of_red
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.failures import retrying
from lance_ops.dagster.fleet.declared_fleet import FleetConfig
from lance_ops.dagster.fleet.left_out import why_left_out
from lance_ops.dagster.markdown import size_text, table
from lance_ops.dagster.runners import LanceRunner, runner_key, runner_resources
from lance_ops.maintenance.fleet import FleetReport, FleetStatus, TableOutcome, maintain

__all__ = ["build_fleet_definitions"]

_CHECK = "maintained"
_SHOWN = 200
_TOLD = 20


class Night(dg.Config):
    """Options of one run."""

    dry_run: bool = Field(
        default=False,
        description="Changes the tables unless true: then the report shows what is owed, and nothing is written.",
    )


def build_fleet_definitions(config: FleetConfig) -> dg.Definitions:
    """Return the asset `<name>`, the job `<name>_maintenance`, its schedule, and the runner that it declares."""
    names = DatasetNames(config.name)
    key = runner_key(config)

    @dg.asset(
        key=names.head,
        description=config.description or f"The Lance tables beneath {config.root}, maintained within a budget.",
        owners=list(config.owners),
        kinds=config.asset_kinds,
        group_name=config.group_name,
        tags=config.tags,
        required_resource_keys={key},
        pool=names.pool,
        config_schema=Night.to_config_schema().as_field(),
        check_specs=[
            dg.AssetCheckSpec(
                _CHECK,
                asset=names.head,
                description="No table failed in the newest night. Damage that a verification finds is named in its "
                "night only.",
            )
        ],
    )
    def fleet(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        dry_run = Night(**context.op_execution_context.op_config).dry_run
        resource: LanceRunner = getattr(context.resources, key)
        location = config.location()

        def log(outcome: TableOutcome) -> None:
            if outcome.status is not FleetStatus.NOTHING_OWED:
                context.log.info("%s: %s %s", outcome.table, outcome.status.value, outcome.reason or "")

        with retrying():
            report = maintain(
                location.uri,
                config.night_budget(),
                config.debt_policy(),
                failure_threshold=config.failure_threshold,
                verify_after=config.verify_after,
                night=first_run(context.instance, context.run),
                dry_run=dry_run,
                storage_options=location.storage_options,
                runner=resource.logging_to(context.log),
                on_outcome=log,
                leave_out=why_left_out(context, location.uri, config.exclude),
            )
        metadata, night = _metadata(report), _evaluation(names, report)
        if not report.ok:
            context.log_event(dg.AssetObservation(names.head, description=report.sentence, metadata=metadata))
            if not dry_run:  # a step that fails yields no result of a check
                context.instance.report_runless_asset_event(night)
                metadata[TOLD_BY_CHECK] = _CHECK
            raise dg.Failure(night.description, metadata=metadata, allow_retries=False)
        judged = _newest_recorded(names, context.instance) if dry_run else night
        maintained = dg.AssetCheckResult(
            check_name=_CHECK, passed=judged.passed, description=judged.description, metadata=dict(judged.metadata)
        )
        yield dg.MaterializeResult(metadata=metadata, check_results=[maintained])

    watched = Watched(config.name, frozenset({names.of("maintenance")}), (_CHECK,))
    job = dg.define_asset_job(
        names.of("maintenance"),
        selection=dg.AssetSelection.assets(names.head),
        description=f"Maintain the tables of {config.name}, the worst debt first.",
        executor_def=dg.in_process_executor,
    )
    schedules = []
    if config.cron is not None:
        schedule = dg.ScheduleDefinition(
            name=names.of("maintenance_schedule"),
            job=job,
            cron_schedule=config.cron,
            execution_timezone=config.timezone,
            default_status=dg.DefaultScheduleStatus.RUNNING,
        )
        schedules.append(schedule)
    return dg.Definitions(
        assets=[fleet],
        jobs=[job],
        schedules=schedules,
        sensors=build_alert_sensors(watched, config.alerts),
        resources=runner_resources(config),
    )


def _evaluation(names: DatasetNames, report: FleetReport) -> dg.AssetCheckEvaluation:
    """Judge a night: it is described in words, with the first tables that failed."""
    failed = [each for each in report.outcomes if each.status is FleetStatus.FAILED]
    told = [f"{each.table}: {each.reason}" for each in failed[:_TOLD]]
    return dg.AssetCheckEvaluation(
        asset_key=names.head,
        check_name=_CHECK,
        passed=not failed,
        description="\n".join([report.sentence, *told]),
        metadata=causes_of_red(each.table for each in failed),
    )


def _newest_recorded(names: DatasetNames, instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation:
    """Return the check's newest recorded result; before the first night, one that no table has failed."""
    recorded = newest_evaluation(instance, dg.AssetCheckKey(names.head, _CHECK))
    if recorded is not None:
        return recorded.evaluation
    return dg.AssetCheckEvaluation(
        asset_key=names.head, check_name=_CHECK, passed=True, description="no night has maintained the tables yet"
    )


def _metadata(report: FleetReport) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "lance/dry_run": report.dry_run,
        "lance/sentence": report.sentence,
        "lance/num_tables": report.num_tables,
        "lance/rewritten_bytes": report.spent_bytes,
        "lance/moved_bytes": report.moved_bytes,
        "lance/saved_read_bytes": report.saved_read_bytes,
        "lance/tables": dg.MetadataValue.md(_tables_markdown(report)),
    }
    for status in FleetStatus:
        metadata[f"lance/num_{status.value.replace(' ', '_')}"] = report.count(status)
    return metadata


def _tables_markdown(report: FleetReport) -> str:
    """Return the tables that something was done to, or that wait or failed; the worst debt first."""
    told = [each for each in report.outcomes if each.reason or each.status is not FleetStatus.NOTHING_OWED]
    header = ["table", "state", "fragments", "read amplification", "price", "moved", "a read saves", "what"]
    lines = [
        (
            each.table,
            each.status.value,
            f"{each.num_fragments_before:,} → {each.num_fragments_after:,}",
            f"{each.amplification_before:.1f} → {each.amplification_after:.1f}",
            size_text(each.spent_bytes),
            size_text(each.moved_bytes),
            size_text(max(each.saved_read_bytes, 0)),
            "; ".join([*each.steps, *([each.reason] if each.reason else [])]),
        )
        for each in told[:_SHOWN]
    ]
    more = f"\n\n… and {len(told) - _SHOWN:,} more" if len(told) > _SHOWN else ""
    return (table(header, lines) if told else "No table owes anything.") + more

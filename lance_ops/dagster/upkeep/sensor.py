"""Build the sensor that asks for upkeep when something is owed and the budget allows it.

A run's key names the owed steps at their version, and Dagster starts one run for a key. A step that gained nothing
waits until the table changes. One that failed waits also then, longer each time. A run that met a passing error, or was
lost, is followed by another one; see `earlier_runs`.
"""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames, UpkeepPolicy
from lance_ops.dagster.head import VERIFY, debt_policy, past_costs, verification_due
from lance_ops.dagster.opening import open_to_look
from lance_ops.dagster.tick_failures import skip_tick_if_damaged
from lance_ops.dagster.upkeep.earlier_runs import EarlierRuns
from lance_ops.dagster.upkeep.records import allowance, fruitless_steps, resting_steps
from lance_ops.maintenance.debt import affordable, dated_key, measure_debt, unpaid

__all__ = ["build_upkeep_sensor"]

_UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def build_upkeep_sensor(config: DatasetConfig, policy: UpkeepPolicy) -> dg.SensorDefinition:
    """Return the sensor of a dataset's debt."""
    names = DatasetNames(config.name)
    job = names.of("upkeep")

    @dg.sensor(
        name=names.of("debt"),
        job_name=job,
        minimum_interval_seconds=policy.interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Asks for upkeep of {config.name} when something is owed.",
    )
    @skip_tick_if_damaged(config)
    def debt(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        snapshot = open_to_look(config)
        if snapshot is None:
            return dg.SkipReason("there is no version yet")
        found = measure_debt(snapshot, debt_policy(config), past_costs=past_costs(context.instance, config))
        now = datetime.now(UTC)
        resting = resting_steps(context.instance, config, found.version, now)
        owed = unpaid(found, (*fruitless_steps(context.instance, config), *resting))
        verification = verification_due(context.instance, config, snapshot)
        verifies = verification is not None and verification.is_owed
        if not owed and not verifies:
            in_vain = "; what is owed gained nothing at this version" if found.owed else ""
            in_vain = f"; {', '.join(resting)} failed lately and is tried again later" if resting else in_vain
            return dg.SkipReason(f"nothing is owed at version {found.version}{in_vain}")
        limit = allowance(context.instance, config)
        if not any(affordable(due, limit) for due in owed) and not (verifies and limit != 0):
            keys = [due.key for due in owed] + [VERIFY] * verifies
            return dg.SkipReason(f"{', '.join(keys)}: the budget has {limit:,} bytes left")
        if context.instance.get_runs(dg.RunsFilter(job_name=job, statuses=_UNDER_WAY), limit=1):
            return dg.SkipReason("upkeep is under way")
        dated = [dated_key(due, found) for due in owed] + [f"v{found.version} {VERIFY}"] * verifies
        earlier = EarlierRuns.of(context.instance, job, "; ".join(dated))
        waiting = earlier.reason_to_wait(context.instance, now)
        return dg.RunRequest(earlier.run_key, job_name=job) if waiting is None else dg.SkipReason(waiting)

    return debt

"""The op that pays what a dataset owes, and the job of that op alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.dagster.attempts import first_run
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head import (
    ORPHAN_BYTES,
    PAST_COSTS,
    VERIFY,
    debt_markdown,
    debt_policy,
    debts_markdown,
    past_costs,
    verification_due,
)
from lance_ops.dagster.markdown import size_text
from lance_ops.dagster.ops import Work, record_verdicts, table_op
from lance_ops.dagster.upkeep.records import FRUITLESS, OUTCOMES, SPENT_BYTES, allowance, fruitless_steps, resting_steps
from lance_ops.dagster.upkeep.verifying import UpkeepVerification, verify_if_due
from lance_ops.maintenance.debt import PaidStep, Payment, PaymentStatus, measure_debt, pay_debt

__all__ = ["Upkeep", "upkeep_job"]


class Upkeep(dg.Config):
    """Overrides for one run."""

    max_megabytes: int | None = Field(
        default=None, description="Rewrite and verify at most this many MiB, instead of the budget."
    )
    again: bool = Field(
        default=False, description="Also take steps that gained nothing at this version, or failed lately."
    )
    dry_run: bool = Field(
        default=False, description="Changes the table unless true: then the run only shows what is owed and its price."
    )


def upkeep_job(config: DatasetConfig) -> dg.JobDefinition:
    """Return the job `<dataset>_upkeep`."""
    op = table_op(config, "upkeep", "Pay what the dataset owes, within its budget.", _upkeep, Upkeep)
    step = dg.NodeInvocation(op.name, alias="upkeep")
    name = DatasetNames(config.name).of("upkeep")
    graph = dg.GraphDefinition(name=name, description=op.description, node_defs=[op], dependencies={step: {}})
    return graph.to_job(executor_def=dg.in_process_executor)


def _upkeep(work: Work, asked: Upkeep) -> dict[str, Any]:
    config, instance = work.config, work.context.instance
    first = first_run(instance, work.context.run)
    policy = debt_policy(config)
    if asked.dry_run:
        return {"lance/dry_run": True, "lance/debt": dg.MetadataValue.md(_owed(work))}
    limit = allowance(instance, config) if asked.max_megabytes is None else asked.max_megabytes * 1024**2
    in_vain: tuple[str, ...] = ()
    if not asked.again:
        resting = resting_steps(instance, config, work.snapshot.version, datetime.now(UTC), first)
        in_vain = (*fruitless_steps(instance, config), *resting)
    past = past_costs(instance, config)
    paid = pay_debt(work.snapshot, policy, max_bytes=limit, fruitless=in_vain, runner=work.runner, past_costs=past)
    left = None if limit is None else max(limit - paid.spent_bytes, 0)
    verified = UpkeepVerification() if paid.error is not None else verify_if_due(work, left)
    metadata = _metadata(paid, verified)
    metadata[OUTCOMES] = dg.MetadataValue.json(
        {
            "taken": [step.key for step in paid.steps],
            "failed": paid.failed_step,
            "version": paid.after.version,
            "run": first,
        }
    )
    sentence = f"upkeep: {metadata['lance/upkeep']}"
    work.context.log_event(dg.AssetObservation(DatasetNames(config.name).head, description=sentence, metadata=metadata))
    record_verdicts(work)
    if paid.error is not None:
        raise paid.error
    verified.raise_for_problem(metadata)
    return metadata


def _owed(work: Work) -> str:
    past = past_costs(work.context.instance, work.config)
    debt = measure_debt(work.snapshot, debt_policy(work.config), past_costs=past)
    return debt_markdown(debt.dues, verification_due(work.context.instance, work.config, work.snapshot))


def _metadata(paid: Payment, verified: UpkeepVerification) -> dict[str, Any]:
    status = _status(paid, verified)
    waiting = (*paid.waiting, *verified.waiting)
    reason = paid.reason or (f"{VERIFY}: {verified.error}" if verified.error else None)
    metadata: dict[str, Any] = {
        "lance/upkeep": status.value,
        SPENT_BYTES: paid.spent_bytes + verified.size_bytes,
        "lance/moved_bytes": paid.moved_bytes,
        FRUITLESS: dg.MetadataValue.json(list(paid.fruitless)),
        PAST_COSTS: dg.MetadataValue.json(paid.past_costs.to_facts()),
        "lance/saved_read_bytes": paid.saved_read_bytes,
        "lance/debt": dg.MetadataValue.md(debts_markdown(paid.before, paid.after)),
    }
    if status in (PaymentStatus.DONE, PaymentStatus.FAILED):
        lines = [*map(_step_line, paid.steps), *verified.steps]
        metadata["lance/steps"] = dg.MetadataValue.md("\n".join(lines) or "none")
    if paid.orphan_bytes is not None:
        metadata[ORPHAN_BYTES] = paid.orphan_bytes
    if waiting:
        metadata["lance/waiting"] = ", ".join(waiting)
    if reason:
        metadata["lance/reason"] = reason
    return metadata


def _status(paid: Payment, verified: UpkeepVerification) -> PaymentStatus:
    """Return how the payment and the verification ended together."""
    if verified.error is not None:
        return PaymentStatus.FAILED
    if verified.steps:
        return PaymentStatus.DONE
    return PaymentStatus.WAITING if verified.is_waiting and not paid.steps else paid.status


def _step_line(step: PaidStep) -> str:
    moved = "" if step.measured is None else f", moved {size_text(step.measured.moved_bytes)}"
    return f"- {step.key}: {step.what}, price {size_text(step.cost_bytes)}{moved}"

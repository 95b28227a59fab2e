"""The command `upkeep`: pay what one dataset owes, within a budget."""

from __future__ import annotations

from typing import Annotated

import typer

from lance_ops.cli.arguments import (
    DryRun,
    Json,
    OnSpark,
    OptionsFile,
    StorageOptions,
    Uri,
    byte_count,
    open_dataset,
    options_to_work,
    runner,
)
from lance_ops.cli.looking import OlderThan, Orphans, TargetRows, debt_facts, policy_of
from lance_ops.cli.output import print_json, print_line, print_table, size
from lance_ops.maintenance.debt import PaidStep, Payment, PaymentPlan, TableDebt, measure_debt, pay_debt, plan_payment

__all__ = ["upkeep"]


def upkeep(
    uri: Uri,
    budget: Annotated[
        int | None,
        typer.Option(
            parser=byte_count,
            metavar="SIZE",
            help="Rewrite at most this much, such as 10GB (10^9) or 10GiB (2^30); default: all that is owed.",
        ),
    ] = None,
    target_rows: TargetRows = 1024 * 1024,
    older_than: OlderThan = None,
    orphans: Orphans = False,
    spark: OnSpark = None,
    dry_run: DryRun = False,
    storage_option: StorageOptions = None,
    options_file: OptionsFile = None,
    as_json: Json = False,
) -> None:
    """Take the steps that a dataset owes, within a budget: compact, extend indices, clean up.

    The job <dataset>_upkeep in Dagster does the same by the declared policy. The job <dataset>_maintenance takes every
    step, owed or not, without a budget, and judges the result by the declared limits: so do `compact`, `reindex`,
    `cleanup` and `health`, one after the other.
    """
    snapshot = open_dataset(uri, options_to_work(uri, storage_option, options_file, only_looks=dry_run)).snapshot
    policy = policy_of(target_rows, older_than)
    if dry_run:
        found = measure_debt(snapshot, policy, orphans=orphans)
        _show_plan(found, plan_payment(found, budget), as_json=as_json)
        return
    paid = pay_debt(snapshot, policy, max_bytes=budget, runner=runner(spark), orphans=orphans)
    _show_payment(paid, as_json=as_json)
    if paid.error is not None:
        raise paid.error


def _show_plan(found: TableDebt, plan: PaymentPlan, *, as_json: bool) -> None:
    if as_json:
        steps = [
            {"step": step.key, "what": step.what, "cost_bytes": step.cost_bytes, "gain_bytes": step.gain_bytes}
            for step in plan.steps
        ]
        print_json({"dry_run": True, "steps": steps, "waiting": plan.waiting, "before": debt_facts(found)})
        return
    if plan.steps:
        print_table(
            "would be done",
            ["step", "why", "a read or look-up gains>", "rewrites>", "frees at least>"],
            [
                [step.key, step.why, size(step.gain_bytes), size(step.cost_bytes), size(step.freed_bytes)]
                for step in plan.steps
            ],
        )
        print_line(
            f"would rewrite {size(plan.cost_bytes)}; "
            f"a read of the table saves as much as reading {size(plan.saved_read_bytes)}"
        )
    elif not plan.waiting:
        print_line(f"nothing is owed at version {found.version}")
    _print_waiting(plan.waiting)


def _show_payment(paid: Payment, *, as_json: bool) -> None:
    before, after = paid.before, paid.after
    if as_json:
        print_json(
            {
                "dry_run": False,
                "status": paid.status,
                "steps": [_step_facts(step) for step in paid.steps],
                "waiting": paid.waiting,
                "spent_bytes": paid.spent_bytes,
                "moved_bytes": paid.moved_bytes,
                "saved_read_bytes": paid.saved_read_bytes,
                "reason": paid.reason,
                "before": debt_facts(before),
                "after": debt_facts(after),
            }
        )
        return
    if paid.steps:
        print_table(
            "done",
            ["step", "price>", "moved>", "what"],
            [
                [step.key, size(step.cost_bytes), size(step.measured.moved_bytes) if step.measured else "", step.what]
                for step in paid.steps
            ],
        )
        print_line(
            f"version {before.version} to {after.version}: rewrote {size(paid.spent_bytes)}; "
            f"a read of the table saves as much as reading {size(paid.saved_read_bytes)}"
        )
    elif not paid.waiting and paid.error is None:
        print_line(f"nothing is owed at version {before.version}")
    _print_waiting(paid.waiting)
    if paid.fruitless:
        print_line(f"gained nothing: {', '.join(paid.fruitless)}", "yellow")


def _step_facts(step: PaidStep) -> dict[str, object]:
    """Return what a step was estimated to cost and to gain, and what was measured; null if it was not."""
    measured = step.measured
    return {
        "step": step.key,
        "what": step.what,
        "cost_bytes": step.cost_bytes,
        "moved_bytes": None if measured is None else measured.moved_bytes,
        "gain_bytes": step.gain_bytes,
        "saved_read_bytes": None if measured is None else measured.saved_read_bytes,
    }


def _print_waiting(waiting: tuple[str, ...]) -> None:
    if waiting:
        print_line(f"the budget does not reach for {', '.join(waiting)}", "yellow")

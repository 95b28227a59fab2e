"""Measure a table's debt, price it in bytes, and pay what is owed within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.debt.dues import Due
    from lance_ops.maintenance.debt.inventory import Growth, Inventory, count_removable_versions
    from lance_ops.maintenance.debt.measurement import ReadCost, TableDebt, measure_debt, price_debt, read_cost
    from lance_ops.maintenance.debt.past_costs import PastCosts
    from lance_ops.maintenance.debt.payment import (
        PaidStep,
        Payment,
        PaymentPlan,
        PaymentStatus,
        affordable,
        dated_key,
        pay_debt,
        plan_payment,
        unpaid,
    )
    from lance_ops.maintenance.debt.policy import DebtPolicy, WantedIndex
    from lance_ops.maintenance.debt.rates import Rates
    from lance_ops.maintenance.debt.rewrites import (
        BudgetIncrement,
        FragmentSize,
        Rewrite,
        budget_increments,
        choose_rewrites,
    )
    from lance_ops.maintenance.debt.step_costs import StepCost
    from lance_ops.maintenance.debt.step_kinds import StepKind

__all__ = [
    "BudgetIncrement",
    "DebtPolicy",
    "Due",
    "FragmentSize",
    "Growth",
    "Inventory",
    "PaidStep",
    "PastCosts",
    "Payment",
    "PaymentPlan",
    "PaymentStatus",
    "Rates",
    "ReadCost",
    "Rewrite",
    "StepCost",
    "StepKind",
    "TableDebt",
    "WantedIndex",
    "affordable",
    "budget_increments",
    "choose_rewrites",
    "count_removable_versions",
    "dated_key",
    "measure_debt",
    "pay_debt",
    "plan_payment",
    "price_debt",
    "read_cost",
    "unpaid",
]

_MODULES = {
    "DebtPolicy": "policy",
    "Due": "dues",
    "StepKind": "step_kinds",
    "FragmentSize": "rewrites",
    "Growth": "inventory",
    "BudgetIncrement": "rewrites",
    "Inventory": "inventory",
    "PaidStep": "payment",
    "PastCosts": "past_costs",
    "Payment": "payment",
    "PaymentPlan": "payment",
    "PaymentStatus": "payment",
    "Rates": "rates",
    "ReadCost": "measurement",
    "Rewrite": "rewrites",
    "StepCost": "step_costs",
    "TableDebt": "measurement",
    "WantedIndex": "policy",
    "affordable": "payment",
    "choose_rewrites": "rewrites",
    "count_removable_versions": "inventory",
    "dated_key": "payment",
    "budget_increments": "rewrites",
    "measure_debt": "measurement",
    "pay_debt": "payment",
    "plan_payment": "payment",
    "price_debt": "measurement",
    "read_cost": "measurement",
    "unpaid": "payment",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)

"""Say what a declared dataset owes: its debt, what past compactions cost, and the age of its verification."""

from lance_ops.dagster.head.owed.debt import debt_markdown, debt_policy, debts_markdown
from lance_ops.dagster.head.owed.learned_costs import PAST_COSTS, past_costs
from lance_ops.dagster.head.owed.verification_age import VERIFY, VerificationDue, verification_due

__all__ = [
    "PAST_COSTS",
    "VERIFY",
    "VerificationDue",
    "debt_markdown",
    "debt_policy",
    "debts_markdown",
    "past_costs",
    "verification_due",
]

"""Commands that look at a dataset, its health and its surroundings, and change nothing."""

from __future__ import annotations

from lance_ops.cli.looking.batches_command import batches
from lance_ops.cli.looking.debt_command import OlderThan, Orphans, TargetRows, debt, debt_facts, policy_of
from lance_ops.cli.looking.diff_command import diff
from lance_ops.cli.looking.doctor_command import doctor
from lance_ops.cli.looking.query_commands import count, query, statistics
from lance_ops.cli.looking.read_commands import health, inspect, versions
from lance_ops.cli.looking.report_command import report
from lance_ops.cli.looking.top_command import top
from lance_ops.cli.looking.verify_command import verify

__all__ = [
    "OlderThan",
    "Orphans",
    "TargetRows",
    "batches",
    "count",
    "debt",
    "debt_facts",
    "diff",
    "doctor",
    "health",
    "inspect",
    "policy_of",
    "query",
    "report",
    "statistics",
    "top",
    "verify",
    "versions",
]

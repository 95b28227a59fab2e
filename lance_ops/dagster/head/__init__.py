"""The head asset of a dataset: its events, its checks, and the sensor that records external versions."""

from lance_ops.dagster.head.asset_specs import MAINTAINED_URI, head_spec, index_specs
from lance_ops.dagster.head.checks import build_checks, head_evaluators
from lance_ops.dagster.head.freshness import FRESH, build_freshness_sensor
from lance_ops.dagster.head.integrity import INTACT, intact_evaluation, next_part_to_verify, verify_within
from lance_ops.dagster.head.observations import observations_of_head
from lance_ops.dagster.head.orphans import ORPHAN_BYTES
from lance_ops.dagster.head.owed import (
    PAST_COSTS,
    VERIFY,
    VerificationDue,
    debt_markdown,
    debt_policy,
    debts_markdown,
    past_costs,
    verification_due,
)
from lance_ops.dagster.head.recorded_versions import newest_recorded_version
from lance_ops.dagster.head.report import report_versions
from lance_ops.dagster.head.validity import unopened_warning
from lance_ops.dagster.head.verdicts import Measured, Verdict, health_markdown, judge, measure
from lance_ops.dagster.head.version_metadata import column_schema
from lance_ops.dagster.head.version_sensor import build_version_sensor

__all__ = [
    "FRESH",
    "INTACT",
    "MAINTAINED_URI",
    "ORPHAN_BYTES",
    "PAST_COSTS",
    "VERIFY",
    "Measured",
    "Verdict",
    "VerificationDue",
    "build_checks",
    "build_freshness_sensor",
    "build_version_sensor",
    "column_schema",
    "debt_markdown",
    "debt_policy",
    "debts_markdown",
    "head_evaluators",
    "head_spec",
    "health_markdown",
    "index_specs",
    "intact_evaluation",
    "judge",
    "measure",
    "newest_recorded_version",
    "next_part_to_verify",
    "observations_of_head",
    "past_costs",
    "report_versions",
    "unopened_warning",
    "verification_due",
    "verify_within",
]

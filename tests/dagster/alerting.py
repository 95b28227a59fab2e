"""A deployment that sends alerts to the tests' receiver, and what makes it send some."""

from __future__ import annotations

import dagster as dg
import pytest

from lance_ops.dagster.evaluations import causes_of_red
from lance_ops.dagster.in_process import Ticked
from lance_ops.dagster.landing import failed_run_checks
from tests.dagster.deployment import Deployment

__all__ = ["WEBHOOK", "alerts", "evaluate", "fail"]

WEBHOOK = {"webhook": {"url": "${ALERT_URL}", "headers": {"Authorization": "Bearer ${ALERT_TOKEN}"}}}


def alerts(deployment: Deployment, channel: str = "webhook") -> Ticked:
    return deployment.tick(f"alerts_{channel}")


def fail(deployment: Deployment, *, evaluates_checks: bool = True) -> None:
    """Run an ingestion that fails: the files of its partition are not there.

    One whose process dies before the end evaluates none of the checks that it planned.
    """
    deployment.instance.add_dynamic_partitions("trips_batches", ["gone"])
    with pytest.MonkeyPatch.context() as patched:
        if not evaluates_checks:
            patched.setattr(failed_run_checks, "report_checks", lambda *_: None)
        deployment.location.run("trips_ingest", tags={"dagster/partition": "gone"}, raise_on_error=False)


def evaluate(
    deployment: Deployment,
    check: str,
    *,
    passed: bool,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    causes: tuple[str, ...] = (),
) -> None:
    """Record a check's result."""
    deployment.instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            deployment.names.head,
            check,
            passed,
            causes_of_red(causes),
            severity=severity,
            description=f"{check} is not as it should be",
        )
    )

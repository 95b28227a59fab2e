"""The ops that measure a dataset before maintenance and judge it afterwards."""

from __future__ import annotations

from typing import Any

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import log_evaluation
from lance_ops.dagster.head import Measured, Verdict, health_markdown, judge, measure
from lance_ops.dagster.ops.table_ops import Work, table_op

__all__ = ["health_op", "record_verdicts", "verdict_op"]


def health_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that measures a dataset and changes nothing."""

    def look(work: Work, _: None) -> dict[str, Any]:
        measured = measure(config, work.snapshot)
        return {"lance/health": dg.MetadataValue.md(health_markdown(measured, judge(config, measured)))}

    return table_op(config, "health", "Measure the dataset's health.", look)


def verdict_op(config: DatasetConfig) -> dg.OpDefinition:
    """Return the op that records the health checks and fails the run if the dataset is beyond a limit.

    Maintenance that ends without an error but leaves the dataset beyond its limits has failed.
    """

    def conclude(work: Work, _: None) -> dict[str, Any]:
        measured, verdicts = record_verdicts(work)
        health = dg.MetadataValue.md(health_markdown(measured, verdicts))
        broken = [verdict.sentence for verdict in verdicts if not verdict.passed]
        if broken:
            raise dg.Failure("; ".join(broken), metadata={"lance/health": health}, allow_retries=False)
        return {"lance/health": health}

    return table_op(config, "verdict", "Judge the dataset's health after maintenance.", conclude)


def record_verdicts(work: Work) -> tuple[Measured, tuple[Verdict, ...]]:
    """Measure the newest version, and record the health checks of the head as a run of the checks would."""
    measured = measure(work.config, work.snapshot.latest())
    verdicts = judge(work.config, measured)
    for verdict in verdicts:
        log_evaluation(work.context, verdict.evaluation(DatasetNames(work.config.name).head))
    return measured, verdicts

"""Build the check that fails while a landing folder cannot be listed, or has files that ingestion does not take.

The check blocks nothing: ingestion takes the other files.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lance_ops.core.errors import LanceOpsError
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.landing.landing import list_landing, shortened

__all__ = ["LANDING_CHECK", "build_landing_check", "evaluate_landing", "landing_evaluation", "was_listed"]

LANDING_CHECK = "landing_readable"

_SET_ASIDE = "lance/set_aside"


def build_landing_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check `landing_readable` of a dataset with a landing folder."""
    names = DatasetNames(config.name)
    config.landing()  # refuse a declaration without a landing folder now, not in the first run

    def landing_readable() -> dg.AssetCheckResult:
        found = evaluate_landing(config)
        return dg.AssetCheckResult(passed=found.passed, description=found.description, metadata=dict(found.metadata))

    return dg.asset_check(
        asset=names.head,
        name=LANDING_CHECK,
        description="The landing folder can be listed, and no file is set aside for its path, its name or its kind.",
        additional_deps=[names.batches],
    )(landing_readable)


def evaluate_landing(config: DatasetConfig) -> dg.AssetCheckEvaluation:
    """List the landing folder and return the check's evaluation."""
    names = DatasetNames(config.name)
    try:
        landing = list_landing(config.landing(), datetime.now(UTC))
    except (LanceOpsError, OSError) as error:
        # An error of the operating system may quote what is secret; errors of this library do not.
        reason = str(error) if isinstance(error, LanceOpsError) else type(error).__name__
        return _evaluation(names, f"the landing folder cannot be listed: {reason}")
    return landing_evaluation(names, [file.sentence for file in landing.set_aside])


def landing_evaluation(names: DatasetNames, set_aside: Sequence[str]) -> dg.AssetCheckEvaluation:
    """Return the check's evaluation for a folder that was listed; `set_aside` has a sentence for each such file."""
    named = shortened(set_aside)
    return _evaluation(names, ". ".join(named), num_set_aside=len(set_aside), named=named)


def was_listed(evaluation: dg.AssetCheckEvaluation) -> bool:
    """Return whether the folder could be listed for this evaluation."""
    return _SET_ASIDE in evaluation.metadata


def _evaluation(
    names: DatasetNames, flaw: str, *, num_set_aside: int | None = None, named: Sequence[str] = ()
) -> dg.AssetCheckEvaluation:
    metadata: dict[str, dg.MetadataValue[Any]] = {}
    if num_set_aside is not None:
        metadata[_SET_ASIDE] = dg.MetadataValue.int(num_set_aside)
    if named:
        metadata["lance/set_aside_files"] = dg.MetadataValue.json(list(named))
    return dg.AssetCheckEvaluation(
        asset_key=names.head,
        check_name=LANDING_CHECK,
        passed=not flaw,
        severity=dg.AssetCheckSeverity.ERROR,
        description=flaw or "no file is set aside",
        metadata=metadata,
    )

"""Build the check that fails while a landing folder cannot be listed, or has files that ingestion does not take.

The check blocks nothing: ingestion takes the other files. It only warns of files that `raw.glob` leaves out and that
look like batches. Other files that the glob leaves out are named, and the check passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lance_ops.core.errors import LanceOpsError
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import CAUSES, causes_of_red, check_result_of
from lance_ops.dagster.landing.landing import list_landing, shortened
from lance_ops.dagster.landing.outside_glob import OutsideGlob

__all__ = [
    "LANDING_CHECK",
    "build_landing_check",
    "evaluate_landing",
    "landing_evaluation",
    "said_of_landing",
    "was_listed",
]

LANDING_CHECK = "landing_readable"

_NOT_LISTED = "not listed"
_SET_ASIDE = "lance/set_aside"
_SET_ASIDE_FILES = "lance/set_aside_files"
_OUTSIDE = "lance/outside_glob"
_OUTSIDE_FILES = "lance/outside_glob_files"
_NEAR_MISSES = "lance/outside_glob_near_misses"
_NEAR_MISS_FILES = "lance/outside_glob_near_misses_files"
_SAID = (_SET_ASIDE, _SET_ASIDE_FILES, _NEAR_MISSES, _NEAR_MISS_FILES, CAUSES)


def build_landing_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check `landing_readable` of a dataset with a landing folder."""
    names = DatasetNames(config.name)
    config.landing()  # refuse a declaration without a landing folder now, not in the first run

    def landing_readable() -> dg.AssetCheckResult:
        return check_result_of(evaluate_landing(config))

    return dg.asset_check(
        asset=names.head,
        name=LANDING_CHECK,
        description="The landing folder can be listed, no file is set aside for its path, its name or its kind, and "
        "raw.glob leaves out no file that looks like a batch.",
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
        return _evaluation(names, f"the landing folder cannot be listed: {reason}", causes_of_red([_NOT_LISTED]))
    return landing_evaluation(names, [file.sentence for file in landing.set_aside], landing.outside)


def landing_evaluation(names: DatasetNames, set_aside: Sequence[str], outside: OutsideGlob) -> dg.AssetCheckEvaluation:
    """Return the check's evaluation for a folder that was listed; `set_aside` has a sentence for each such file."""
    named = shortened(set_aside)
    metadata: dict[str, dg.MetadataValue[Any]] = {_SET_ASIDE: dg.MetadataValue.int(len(set_aside))}
    if named:
        metadata[_SET_ASIDE_FILES] = dg.MetadataValue.json(list(named))
    if outside.num_files:
        metadata[_OUTSIDE] = dg.MetadataValue.int(outside.num_files)
        metadata[_OUTSIDE_FILES] = dg.MetadataValue.json(list(outside.files))
    if outside.num_near_misses:
        metadata[_NEAR_MISSES] = dg.MetadataValue.int(outside.num_near_misses)
        metadata[_NEAR_MISS_FILES] = dg.MetadataValue.json(list(outside.near_misses))
    told = ". ".join([*(named or ["no file is set aside"]), *outside.sentences])
    warns = outside.num_near_misses > 0 and not set_aside
    if set_aside:
        metadata |= causes_of_red([*set_aside, *outside.near_misses])
    return _evaluation(names, told, metadata, passed=not (set_aside or outside.num_near_misses), warns=warns)


def was_listed(evaluation: dg.AssetCheckEvaluation) -> bool:
    """Return whether the folder could be listed for this evaluation."""
    return _SET_ASIDE in evaluation.metadata


def said_of_landing(evaluation: dg.AssetCheckEvaluation) -> tuple[object, ...]:
    """Return what another evaluation must differ in to be worth a record.

    Why the folder cannot be listed is left out: errors of a store hold the time and the id of a request. So is how many
    files the glob leaves out on purpose: a folder of handled files may grow all day.
    """
    told = (evaluation.metadata.get(name) for name in _SAID)
    has_others = _OUTSIDE in evaluation.metadata
    return evaluation.passed, has_others, *(each.value if each is not None else None for each in told)


def _evaluation(
    names: DatasetNames,
    description: str,
    metadata: Mapping[str, dg.MetadataValue[Any]],
    *,
    passed: bool = False,
    warns: bool = False,
) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=names.head,
        check_name=LANDING_CHECK,
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
        description=description,
        metadata=metadata,
    )

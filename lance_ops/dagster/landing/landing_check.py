"""Build the check that fails while a landing folder cannot be listed, or has files that ingestion does not take.

The check blocks nothing: ingestion takes the other files. It only warns of files that `raw.glob` leaves out and that
look like batches. Other files that the glob leaves out are named, and the check passes.

The check also warns of a folder whose listing takes a third of the time that Dagster gives a tick of the sensor. A tick
that takes longer is ended, and none asks for batches any more.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from lance_ops.core.errors import LanceOpsError
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import CAUSES, causes_of_red, check_result_of
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.landing.landing import list_landing, shortened
from lance_ops.dagster.landing.landing_entries import Landing
from lance_ops.dagster.landing.outside_glob import OutsideGlob

__all__ = [
    "LANDING_CHECK",
    "advice_on_slow_listing",
    "build_landing_check",
    "evaluate_landing",
    "landing_evaluation",
    "newest_landing_evaluation",
    "said_of_landing",
    "sentences_not_yet_recorded",
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
_LISTING_SECONDS = "lance/listing_seconds"
_SLOW = "lance/listing_is_slow"
_SLOW_PART = 1 / 3
_AGAIN_FAST_PART = 1 / 4
"""A folder that was slow counts as slow down to this part: one near the limit would be told at each listing."""
_TICK_SECONDS = 60
_TICK_SECONDS_VARIABLE = "DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS"
"""Dagster's limit of the time of a tick, and the variable that sets another one."""
_SAID = (_SLOW, _SET_ASIDE, _SET_ASIDE_FILES, _NEAR_MISSES, _NEAR_MISS_FILES, CAUSES)


def build_landing_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    """Return the check `landing_readable` of a dataset with a landing folder."""
    names = DatasetNames(config.name)
    config.landing()  # refuse a declaration without a landing folder now, not in the first run

    def landing_readable(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        return check_result_of(evaluate_landing(config, context.instance))

    return dg.asset_check(
        asset=names.head,
        name=LANDING_CHECK,
        description="The landing folder can be listed in a third of the time of a tick, no file is set aside for its "
        "path, its name or its kind, and raw.glob leaves out no file that looks like a batch.",
        additional_deps=[names.batches],
    )(landing_readable)


def evaluate_landing(config: DatasetConfig, instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation:
    """List the landing folder and return the check's evaluation."""
    names = DatasetNames(config.name)
    try:
        landing = list_landing(config.landing(), datetime.now(UTC))
    except (LanceOpsError, OSError) as error:
        # An error of the operating system may quote what is secret; errors of this library do not.
        reason = str(error) if isinstance(error, LanceOpsError) else type(error).__name__
        return _evaluation(names, f"the landing folder cannot be listed: {reason}", causes_of_red([_NOT_LISTED]))
    set_aside = [file.sentence for file in landing.set_aside]
    return landing_evaluation(
        names, set_aside, landing.outside, landing.seconds, newest_landing_evaluation(names, instance)
    )


def newest_landing_evaluation(names: DatasetNames, instance: dg.DagsterInstance) -> dg.AssetCheckEvaluation | None:
    """Return the newest recorded evaluation of the check; None if there is none."""
    recorded = newest_evaluation(instance, dg.AssetCheckKey(names.head, LANDING_CHECK))
    return None if recorded is None else recorded.evaluation


def sentences_not_yet_recorded(names: DatasetNames, instance: dg.DagsterInstance, landing: Landing) -> list[str]:
    """Return the sentences on files set aside and on a slow listing that the newest recorded evaluation lacks.

    Dagster never removes the log of a tick, so the sensor logs only what the check has not said yet.
    """
    named, slow = shortened([file.sentence for file in landing.set_aside]), advice_on_slow_listing(landing.seconds)
    if not named and slow is None:
        return []
    last = newest_landing_evaluation(names, instance)
    recorded = last.metadata if last is not None else {}
    files = recorded.get(_SET_ASIDE_FILES)
    told = files.value if files is not None and isinstance(files.value, list) else []
    return [
        *(sentence for sentence in named if sentence not in told),
        *([slow] if slow is not None and _SLOW not in recorded else []),
    ]


def advice_on_slow_listing(seconds: float, *, was_slow: bool = False) -> str | None:
    """Return what to do about a listing that takes too much of a tick; None for one that does not.

    `was_slow` says that the newest recorded evaluation of the check was slow.
    """
    limit = _seconds_of_a_tick()
    if seconds < limit * (_AGAIN_FAST_PART if was_slow else _SLOW_PART):
        return None
    return (
        f"the landing folder took {seconds:.0f} s to list, and Dagster ends a tick after {limit:g} s: move handled "
        "files away, which raw.vanished: keep allows, or let raw.uri name a prefix by date if raw.key finds the same "
        f"keys beneath it; {_TICK_SECONDS_VARIABLE} sets another limit for the daemon and the code servers"
    )


def landing_evaluation(
    names: DatasetNames,
    set_aside: Sequence[str],
    outside: OutsideGlob,
    listing_seconds: float,
    last: dg.AssetCheckEvaluation | None = None,
) -> dg.AssetCheckEvaluation:
    """Return the check's evaluation for a folder that was listed; `set_aside` has a sentence for each such file.

    `last` is the check's newest recorded result.
    """
    was_slow = last is not None and _SLOW in last.metadata
    named, slow = shortened(set_aside), advice_on_slow_listing(listing_seconds, was_slow=was_slow)
    metadata: dict[str, dg.MetadataValue[Any]] = {
        _SET_ASIDE: dg.MetadataValue.int(len(set_aside)),
        _LISTING_SECONDS: dg.MetadataValue.float(float(listing_seconds)),
    }
    if slow:
        metadata[_SLOW] = dg.MetadataValue.bool(True)
    if named:
        metadata[_SET_ASIDE_FILES] = dg.MetadataValue.json(list(named))
    if outside.num_files:
        metadata[_OUTSIDE] = dg.MetadataValue.int(outside.num_files)
        metadata[_OUTSIDE_FILES] = dg.MetadataValue.json(list(outside.files))
    if outside.num_near_misses:
        metadata[_NEAR_MISSES] = dg.MetadataValue.int(outside.num_near_misses)
        metadata[_NEAR_MISS_FILES] = dg.MetadataValue.json(list(outside.near_misses))
    told = ". ".join([*(named or ["no file is set aside"]), *([slow] if slow else []), *outside.sentences])
    is_warning = slow is not None or outside.num_near_misses > 0
    if set_aside:
        metadata |= causes_of_red([*set_aside, *outside.near_misses])
    return _evaluation(names, told, metadata, passed=not (set_aside or is_warning), warns=is_warning and not set_aside)


def was_listed(evaluation: dg.AssetCheckEvaluation) -> bool:
    """Return whether the folder could be listed for this evaluation."""
    return _SET_ASIDE in evaluation.metadata


def said_of_landing(evaluation: dg.AssetCheckEvaluation) -> tuple[object, ...]:
    """Return what another evaluation must differ in to be worth a record.

    How long the listing took is left out, but for whether that is too long. Why the folder cannot be listed is left
    out: errors of a store hold the time and the id of a request. So is how many files the glob leaves out on purpose: a
    folder of handled files may grow all day.
    """
    told = (evaluation.metadata.get(name) for name in _SAID)
    has_others = _OUTSIDE in evaluation.metadata
    return evaluation.passed, has_others, *(each.value if each is not None else None for each in told)


def _seconds_of_a_tick() -> float:
    try:
        return float(os.environ.get(_TICK_SECONDS_VARIABLE) or _TICK_SECONDS)
    except ValueError:  # Dagster refuses it
        return _TICK_SECONDS


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

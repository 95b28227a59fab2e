"""The check `valid`: whether the newest version opens, its manifest's invariants hold, and its files are there.

No run comes to the checks of a table that does not open, and a table that has gone makes no versions. The sensor of
versions therefore reports the check in both cases, and again when the table opens.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from lance_ops.core.errors import CorruptFile
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import LOOKED, not_looked_warning
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.head.recorded_versions import newest_recorded_version
from lance_ops.dagster.opening import OpenNewest, opening_once
from lance_ops.dagster.tick_failures import remedy_of_damage
from lance_ops.snapshot import validate

__all__ = ["NO_VERSION_YET", "VALID", "evaluate_valid", "unless_reported", "unopened_warning", "was_unopened"]

VALID = "valid"
"""The name of the check."""

NO_VERSION_YET = "there is no version yet: the first batch makes the dataset"

_OPENS = "lance/opens"


def evaluate_valid(
    instance: dg.DagsterInstance, config: DatasetConfig, open_newest: OpenNewest | None = None
) -> dg.AssetCheckEvaluation:
    """Evaluate the check on the newest version, which `open_newest` opens if it is given.

    If the dataset does not exist, the check passes unless Dagster has recorded a version of it.
    """
    names = DatasetNames(config.name)
    remedy = remedy_of_damage(names)
    try:
        snapshot = (open_newest or opening_once(config))()
    except CorruptFile as error:
        return _evaluation(names, f"{error}; {remedy}", {_OPENS: False})
    if snapshot is None:
        recorded = newest_recorded_version(instance, config)
        if recorded is None:
            return _evaluation(names, NO_VERSION_YET, {}, passed=True)
        gone = (
            f"{config.table().public_uri} has no version, and version {recorded} was recorded: mount or bring back its "
            f"folder; if the table was removed on purpose, wipe the materializations of {names.head.to_user_string()}"
        )
        return _evaluation(names, gone, {_OPENS: False})
    try:
        validate(snapshot)
    except CorruptFile as error:
        return _evaluation(names, f"{error}; {remedy}", {"lance/version": snapshot.version})
    return _evaluation(names, None, {"lance/version": snapshot.version}, passed=True)


def unopened_warning(head: dg.AssetKey, name: str, error: CorruptFile) -> dg.AssetCheckEvaluation:
    """Return a warning of another check: `valid` fails for the same damage, and alerts tell of that one."""
    return not_looked_warning(head, name, f"the newest version does not open: {error}")


def unless_reported(instance: dg.DagsterInstance, found: dg.AssetCheckEvaluation) -> list[dg.AssetCheckEvaluation]:
    """Return the evaluation in a list, or none if the newest recorded one has the same result and text.

    A first evaluation that passes is not returned.
    """
    last = newest_evaluation(instance, found.asset_check_key)
    if last is None:
        return [] if found.passed else [found]
    said = (last.evaluation.passed, last.evaluation.description)
    return [] if said == (found.passed, found.description) else [found]


def was_unopened(instance: dg.DagsterInstance, config: DatasetConfig) -> bool:
    """Return whether the newest evaluation of `valid` says that the table does not open, or that it could not look."""
    last = newest_evaluation(instance, dg.AssetCheckKey(DatasetNames(config.name).head, VALID))
    said = {} if last is None else last.evaluation.metadata
    return any(name in said and said[name].value is False for name in (_OPENS, LOOKED))


def _evaluation(
    names: DatasetNames, description: str | None, metadata: Mapping[str, bool | int], *, passed: bool = False
) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(
        asset_key=names.head,
        check_name=VALID,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=description,
        metadata=dict(metadata),
        blocking=True,
    )

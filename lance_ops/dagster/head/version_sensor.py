"""Build the sensor that records versions without an event: of other writers, and of a run that died after its commit.

The cursor is the newest version that the sensor has handled. It skips versions that clean-up has removed. It leaves a
version younger than a grace period to the run that made it. If the newest version is below the cursor, the dataset was
removed and created again, and the sensor starts over. If the newest version does not open, or if the table has gone,
it reports the check `valid`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg

from lance_ops.core.errors import CorruptFile
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head.report import unrecorded
from lance_ops.dagster.head.validity import evaluate_valid, unless_reported, was_unopened
from lance_ops.dagster.opening import open_if_exists
from lance_ops.dagster.tick_failures import skip_tick_if_damaged

__all__ = ["build_version_sensor"]

DEFAULT_GRACE = timedelta(seconds=60)
_WINDOW = 1000
"""How many versions a sensor without a cursor looks back. With a cursor it records all versions after it in turn."""


def build_version_sensor(
    config: DatasetConfig, interval_seconds: int = 60, grace: timedelta = DEFAULT_GRACE, max_versions_per_tick: int = 50
) -> dg.SensorDefinition:
    """Return the sensor of a dataset's versions."""
    names = DatasetNames(config.name)

    @dg.sensor(
        name=names.of("versions"),
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Records versions of {config.name} that no run recorded.",
    )
    @skip_tick_if_damaged(config)
    def versions(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        try:
            newest = open_if_exists(config)
        except CorruptFile:
            newest = None
        if newest is None:
            found = evaluate_valid(context.instance, config)
            return dg.SensorResult(
                asset_events=unless_reported(context.instance, found),
                skip_reason=dg.SkipReason(found.description or "the table opens again"),
                cursor=context.cursor,
            )
        done = _version_of(context.cursor)
        if newest.version < done:
            context.log.warning("version %s is the newest, below %s: the dataset was made anew", newest.version, done)
            done = 0
        was_closed = was_unopened(context.instance, config)
        if newest.version == done and not was_closed:
            return dg.SensorResult(skip_reason=dg.SkipReason(_all_recorded(done, done)), cursor=str(done))
        after = [version for version in newest.committer.versions() if done < version <= newest.version]
        num_left_out = max(len(after) - _WINDOW, 0) if done == 0 else 0
        after = after[num_left_out:]
        first, num_after = after[:1], len(after)
        after = after[:max_versions_per_tick]
        opened_again = [evaluate_valid(context.instance, config)] if was_closed else []
        unseen = unrecorded(
            context.instance, config, newest, after, num_events=num_after, settled_before=datetime.now(UTC) - grace
        )
        if unseen.too_young is not None:
            after = [version for version in after if version < unseen.too_young]
        done = max([done, *after])
        reason = _all_recorded(done, newest.version)
        if num_left_out:
            reason += f"; {num_left_out:,} versions below {first[0]} are older than the newest {_WINDOW:,} and left out"
        return dg.SensorResult(
            asset_events=[*opened_again, *unseen.events], skip_reason=dg.SkipReason(reason), cursor=str(done)
        )

    return versions


def _all_recorded(done: int, newest: int) -> str:
    return f"every version up to {done} is recorded; {newest} is the newest"


def _version_of(cursor: str | None) -> int:
    return int(cursor) if cursor and cursor.isdigit() else 0

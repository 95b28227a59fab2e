"""Build the sensor that records versions without an event: of other writers, and of a run that died after its commit.

The cursor is the newest version that the sensor has handled. It skips versions that clean-up has removed. It leaves a
version younger than a grace period to the run that made it. A version whose time lies more than an hour ahead is
not young: its writer's clock was wrong. If the newest version is below the cursor, or if the version of its number was
committed at another time, the dataset was removed and created again, and the sensor starts over. If the newest version
does not open, or if the table has gone, it reports the check `valid`.

Dagster ends a tick after 60 seconds and then keeps no cursor. A tick therefore stops in time, and the next one goes on.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Self

import dagster as dg

from lance_ops.core.errors import CorruptFile
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head.recorded_versions import identity_of, may_hold
from lance_ops.dagster.head.report import unrecorded
from lance_ops.dagster.head.validity import evaluate_valid, unless_reported, was_unopened
from lance_ops.dagster.opening import open_to_look
from lance_ops.dagster.tick_failures import skip_tick_if_damaged
from lance_ops.snapshot import Snapshot

__all__ = ["build_version_sensor"]

DEFAULT_GRACE = timedelta(seconds=60)
_WINDOW = 1000
"""How many versions a sensor without a cursor looks back. With a cursor it records all versions after it in turn."""
_MAX_SECONDS = 20.0
"""After this time, a tick looks at no other version."""


@dataclass(frozen=True)
class _Handled:
    """The sensor's cursor: the newest version that it has handled, and when that was committed, if it is known."""

    version: int = 0
    committed_at: float | None = None

    def encode(self) -> str:
        """Return the cursor's text."""
        return json.dumps([self.version, self.committed_at])

    @classmethod
    def decode(cls, cursor: str | None) -> Self:
        """Return what a cursor's text says, nothing if it cannot be read. It may be the version's number alone."""
        try:
            told = json.loads(cursor or "0")
            version, committed_at = (told, None) if isinstance(told, int) else told
            return cls(int(version), None if committed_at is None else float(committed_at))
        except (TypeError, ValueError):
            return cls()

    def may_be_in(self, newest: Snapshot) -> bool:
        """Return whether the opened dataset is the one that the version was handled of, as far as can be told."""
        if self.version == 0 or self.committed_at is None:
            return self.version <= newest.version
        return may_hold(newest, (self.version, self.committed_at))


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
            newest = open_to_look(config)
        except CorruptFile:
            newest = None
        if newest is None:
            found = evaluate_valid(context.instance, config)
            return dg.SensorResult(
                asset_events=unless_reported(context.instance, found),
                skip_reason=dg.SkipReason(found.description or "the table opens again"),
                cursor=context.cursor,
            )
        done = _Handled.decode(context.cursor)
        if not done.may_be_in(newest):
            context.log.warning("the dataset was made anew: version %s is another one than before", done.version)
            done = _Handled()
        was_closed = was_unopened(context.instance, config)
        if newest.version == done.version and not was_closed:
            done = _Handled(*identity_of(newest.manifest))
            reason = _all_recorded(done.version, newest.version)
            return dg.SensorResult(skip_reason=dg.SkipReason(reason), cursor=done.encode())
        after = [version for version in newest.committer.versions() if done.version < version <= newest.version]
        num_left_out = max(len(after) - _WINDOW, 0) if done.version == 0 else 0
        after = after[num_left_out:]
        opened_again = [evaluate_valid(context.instance, config)] if was_closed else []
        unseen = unrecorded(
            context.instance,
            config,
            newest,
            after[:max_versions_per_tick],
            grace=grace,
            max_seconds=_MAX_SECONDS,
        )
        if unseen.reached is not None:
            done = _Handled(*unseen.reached)
        reason = _all_recorded(done.version, newest.version)
        if num_left_out:
            reason += f"; {num_left_out:,} versions below {after[0]} are older than the newest {_WINDOW:,} and left out"
        return dg.SensorResult(
            asset_events=[*opened_again, *unseen.events], skip_reason=dg.SkipReason(reason), cursor=done.encode()
        )

    return versions


def _all_recorded(done: int, newest: int) -> str:
    return f"every version up to {done} is recorded; {newest} is the newest"

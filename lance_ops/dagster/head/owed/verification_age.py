"""Say whether the verification of a dataset's files is due: `maintenance.upkeep.verify_after_days` declares its age."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.head.integrity import last_pass_ended_at
from lance_ops.dagster.markdown import size_text
from lance_ops.snapshot import Snapshot

__all__ = ["VERIFY", "VerificationDue", "verification_due"]

VERIFY = "verify"
"""The name of the step among the other dues."""


@dataclass(frozen=True)
class VerificationDue:
    """When a pass over all files last ended, and the age from which another one is owed.

    A pass that found damage counts: the check `intact` is red, and another pass would find the same.
    """

    ended_at: datetime | None
    after: timedelta
    measured_at: datetime
    size_bytes: int
    """The bytes of the data files that a pass reads; it reads indices, too."""

    @property
    def is_owed(self) -> bool:
        """Whether the last pass that ended is too old, or none is known."""
        return self.ended_at is None or self.measured_at - self.ended_at >= self.after

    @property
    def why(self) -> str:
        """The age of the last pass in words."""
        limit = f"the limit is {_days(self.after)}"
        if self.ended_at is None:
            return f"no pass over all files is known to have ended; {limit}"
        return f"all files were last verified {_days(self.measured_at - self.ended_at)} ago; {limit}"

    @property
    def line(self) -> tuple[object, ...]:
        """The due as a line among the others. It gains and frees nothing; it reads where the others rewrite."""
        return (VERIFY, "yes" if self.is_owed else "not yet", self.why, "", f"reads {size_text(self.size_bytes)}", "")


def verification_due(
    instance: dg.DagsterInstance, config: DatasetConfig, snapshot: Snapshot, now: datetime | None = None
) -> VerificationDue | None:
    """Return when the files of a version are to be verified; None if the dataset declares no age."""
    upkeep = config.maintenance.upkeep
    if upkeep is None or upkeep.verify_after is None:
        return None
    ended = last_pass_ended_at(instance, config)
    stored = (file.file_size_bytes for fragment in snapshot.manifest.fragments for file in fragment.files)
    return VerificationDue(ended, upkeep.verify_after, now or datetime.now(UTC), sum(stored))


def _days(age: timedelta) -> str:
    return f"{age / timedelta(days=1):.3g} days"

"""The options of a clean-up."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypedDict

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass

__all__ = ["DEFAULT_AGE", "MOST_DAYS", "AutoCleanupConfig", "CleanupBounds", "CleanupOptions"]

DEFAULT_AGE = timedelta(weeks=2)

MOST_DAYS = 36_525
"""The most days of a declared age, a century: a `timedelta` overflows for very large numbers."""


class AutoCleanupConfig(TypedDict, total=False):
    """The settings of automatic clean-up: how often, in versions (20), and from which age (two weeks)."""

    interval: int
    older_than_seconds: int


@dataclass(frozen=True)
class CleanupBounds:
    """What an earlier plan of a clean-up covers: its versions, and files without a version, as old as at its time.

    `planned_at` is by the store's clock.
    """

    versions: frozenset[int]
    planned_at: datetime


@dataclass(frozen=True)
class CleanupOptions:
    """Which versions to remove; by default, versions older than two weeks.

    With both `older_than` and `retain_versions`, a version is removed only if both allow it. `versions` names the
    versions instead. `delete_unverified` removes files that no version names at any age: this is safe only while no
    other process writes to the table. `keep_branch_starts` keeps the versions that branches began with, as the
    reference does; a branch itself does not need them, because it has manifests of its own. `within` keeps what has
    become removable after an earlier plan.
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    delete_unverified: bool = False
    error_if_tagged_old_versions: bool = True
    delete_rate_limit: int | None = None
    versions: tuple[int, ...] | None = None
    delete_concurrency: int | None = None
    keep_branch_starts: bool = True
    within: CleanupBounds | None = None

    def old_until(self, now: datetime) -> datetime | None:
        """Return the age limit as a moment: a version made after it is kept. None means that age does not matter."""
        age = self.older_than
        if age is None and self.retain_versions is None:
            age = DEFAULT_AGE
        if age is None:
            return None
        try:
            return now - age
        except OverflowError:  # older than time: nothing is
            return datetime.min.replace(tzinfo=now.tzinfo)

    def may_remove(self, version: int, rank: int, written: datetime | None, now: datetime) -> bool:
        """Return whether the options allow to remove a version that has `rank` newer versions.

        `written` is when its manifest was written, by the store's clock, and `now` is the present: clean-up goes by the
        same clock, and a measurement, which writes nothing, by its own. If `written` is None, the age is unknown, and
        age keeps the version.
        """
        if self.within is not None and version not in self.within.versions:
            return False
        among_newest = rank < (self.retain_versions or 1)
        if self.versions is not None:
            if among_newest and version in self.versions:
                raise InvalidInput(f"version {version} cannot be removed: it is among the newest")
            return not among_newest and version in self.versions
        limit = self.old_until(now)
        return not among_newest and (limit is None or (written is not None and written <= limit))

    def __post_init__(self) -> None:
        if self.retain_versions is not None and self.retain_versions < 1:
            raise InvalidInput(f"retain_versions must be at least 1, not {self.retain_versions}")
        if self.older_than is not None and self.older_than < timedelta(0):
            raise InvalidInput("older_than must not be negative")
        if self.delete_rate_limit is not None and self.delete_rate_limit < 1:
            raise InvalidInput(f"delete_rate_limit must be at least 1 a second, not {self.delete_rate_limit}")
        if self.delete_concurrency is not None and self.delete_concurrency < 1:
            raise InvalidInput(f"delete_concurrency must be at least 1, not {self.delete_concurrency}")

"""Find and open the version of an upstream asset that a run reads: the one that Dagster recorded, not the newest.

It is the highest version that this very run recorded, else the highest one recorded before the run began, so that all
steps of a run read the same version while others write. Outside of a run it is the highest one recorded. The event that
was stored last does not tell it: concurrent runs, such as those of a backfill, record their versions in any order.

Clean-up may have removed the version. If the next one is a rewrite, as of a compaction, or only changed an index, that
one holds the same rows, and the run reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import dagster as dg

from lance_ops.api import LanceDataset
from lance_ops.core.errors import VersionNotFound
from lance_ops.core.records import dataclass
from lance_ops.dagster.event_log import records_of_pages
from lance_ops.transactions import CommittedVersion, CreateIndex, ReserveFragments, Rewrite, read_version

__all__ = ["VERSION", "VersionEvent", "current_run", "open_recorded", "version_events"]

VERSION = "lance/version"
_URI = "dagster/uri"
_SAME_ROWS = (Rewrite, CreateIndex, ReserveFragments)
"""Operations that leave the rows and columns of a table as they are."""
_PAGE = 200
_MOST_EVENTS = 200
"""How many events that may count are compared: concurrent runs store theirs in any order."""


@dataclass(frozen=True)
class VersionEvent:
    """A version that an event of an asset recorded, and when, in seconds of the Unix epoch."""

    version: int
    logged_at: float


def current_run() -> dg.OpExecutionContext | None:
    """Return the context of the step that runs here, or None, as when somebody loads an asset in a notebook."""
    try:
        return dg.OpExecutionContext.get()
    except dg.DagsterInvariantViolationError:
        return None


def version_events(
    instance: dg.DagsterInstance, asset_key: dg.AssetKey, uri: str, *, on_branch: bool
) -> list[VersionEvent]:
    """Return the events of the dataset at `uri` that tell which version a step reads, the last stored one first.

    They are those of this very run, or else those from before the run began. An event without a URI, such as one of a
    declared dataset's head, tells of the main branch.
    """
    step = current_run()
    began = None
    if step is not None:
        record = instance.get_run_record_by_id(step.run_id)
        began = None if record is None else record.start_time or record.create_timestamp.timestamp()
    of_run: list[VersionEvent] = []
    earlier: list[VersionEvent] = []
    num_earlier = 0
    for event in _events(instance, asset_key):
        is_of_run = step is not None and event.run_id == step.run_id
        if not is_of_run and began is not None and event.timestamp > began:
            continue
        version = _version_of(event.asset_materialization, uri, on_branch)
        if version is not None:
            (of_run if is_of_run else earlier).append(VersionEvent(version, event.timestamp))
        num_earlier += not is_of_run
        if num_earlier == _MOST_EVENTS:
            break
    return of_run or earlier


def open_recorded(
    newest: LanceDataset, events: Sequence[VersionEvent], asset: str, warn: Callable[[str], object]
) -> LanceDataset:
    """Open the version that a step reads; `newest` is the newest one, and `events` are those of `version_events`.

    An event with a higher version than that of the last event counts only if the version is older than the event: a
    dataset that was removed and created again counts from 1 again. `warn` is told if another version with the same rows
    is opened. Raises `VersionNotFound`, which names the `asset`, if the version is gone and no such version is known.
    """
    if not events:
        return newest
    last = events[0]
    higher = [event for event in events if last.version < event.version <= newest.version]
    for event in sorted(higher, key=lambda event: event.version, reverse=True):
        opened = _open(newest, event.version, asset, warn)
        committed = opened.snapshot.manifest.timestamp
        if opened.version != event.version or committed is None or committed.timestamp() <= event.logged_at:
            return opened
    return _open(newest, last.version, asset, warn)


def _open(newest: LanceDataset, version: int, asset: str, warn: Callable[[str], object]) -> LanceDataset:
    """Open a version, or if it is gone a later one with the same rows."""
    if version == newest.version:
        return newest
    try:
        return newest.checkout_version(version)
    except VersionNotFound as error:
        opened = _with_the_same_rows(newest, version)
        if opened is None:
            raise VersionNotFound(
                f"{newest.uri}: version {version}, which asset {asset} recorded, is gone: materialize the asset again, "
                'or name a version or tag in the metadata of the input, AssetIn(metadata={"version": 3})'
            ) from error
    warn(
        f"{newest.uri}: version {version}, which asset {asset} recorded, is gone; version {opened.version}, which "
        "holds the same rows, is read"
    )
    return opened


def _with_the_same_rows(newest: LanceDataset, gone: int) -> LanceDataset | None:
    """Return the first retained version after the one that is gone, if transactions tell that it has the same rows."""
    store, committer = newest.snapshot.store, newest.snapshot.committer
    following = next((version for version in committer.versions() if version > gone), None)
    try:
        if following is not None and _keeps_rows(read_version(store, committer, following), gone):
            return newest.checkout_version(following)
    except VersionNotFound:  # clean-up has gone on
        pass
    return None


def _keeps_rows(committed: CommittedVersion, gone: int) -> bool:
    """Return whether a version, the first that is retained after the one that is gone, has the same rows.

    A rewrite that gives its fragments reserved ids has reserved them in a version of its own. If it was planned on the
    version that is gone, and there is one version between the two, then that one is the reservation.
    """
    stored = committed.stored_transaction
    if stored is None or stored.operation_type not in _SAME_ROWS:
        return False
    if committed.version == gone + 1:
        return True
    made = stored.decoded
    if committed.version != gone + 2 or made.read_version != gone or not isinstance(made.operation, Rewrite):
        return False
    return any(fragment.id for group in made.operation.groups for fragment in group.new_fragments)


def _events(instance: dg.DagsterInstance, asset_key: dg.AssetKey) -> Iterator[dg.EventLogRecord]:
    """Yield the materializations of an asset, the last stored one first."""
    return records_of_pages(partial(instance.fetch_materializations, asset_key, limit=_PAGE))


def _version_of(event: dg.AssetMaterialization | None, uri: str, on_branch: bool) -> int | None:
    """Return the event's version, unless the event tells of another place, such as another branch."""
    if event is None or VERSION not in event.metadata:
        return None
    place = event.metadata.get(_URI)
    if on_branch if place is None else place.value != uri:
        return None
    version = event.metadata[VERSION].value
    return version if isinstance(version, int) else None

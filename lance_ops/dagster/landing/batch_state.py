"""Say, as a pure function, in which state each landed batch is, and why.

The states follow from three sources, and no list is kept beside them: the landing folder says which files there are,
the dataset's history which batches are in the table and with which content, and Dagster's event log and runs what was
asked for and how it ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from enum import Enum

from lance_ops.core.records import dataclass
from lance_ops.core.schema import SchemaMode
from lance_ops.dagster.declaration import RawFiles
from lance_ops.dagster.landing.batch_runs import FailedRuns
from lance_ops.dagster.landing.landing import is_in_future
from lance_ops.dagster.landing.landing_entries import LandedBatch, Landing, original_key
from lance_ops.dagster.landing.outside_glob import OutsideGlob
from lance_ops.maintenance import IngestedBatch, tokens_of
from lance_ops.maintenance.ingest import printable

__all__ = ["BatchReport", "BatchState", "BatchStatus", "Evidence", "judge_batches", "late_batches"]

_NO_PARTITION = "Dagster has no partition of it: its files came from elsewhere, or the partition was deleted"
_STAYS_AWAY = (
    "a restore or an overwrite took it out, and Dagster has no partition of it: it stays away unless its files change; "
    "to have it back, add partition"
)
_SUPERSEDED = "a newer batch is the whole table"
_KEY_OF_CHANGED = re.compile(r"=[0-9a-f]{12}$")


class BatchState(Enum):
    """Where a batch is on its way from the landing folder into the table; those that need somebody come first."""

    QUARANTINED = "quarantined"
    FAILED = "failed"
    CHANGED = "changed"
    VANISHED = "vanished"
    REQUESTED = "requested"
    LANDED = "landed"
    WAITING = "waiting"
    SUPERSEDED = "superseded"
    INGESTED = "ingested"


@dataclass(frozen=True)
class BatchStatus:
    """The state of one batch. `reason` also says what to do, if somebody must: then `is_settled` is False.

    `version` is the one that ingested it. A late batch came into the table after one with a greater key. A doubtful
    batch is unsettled only because no run of it is found, and its run may be about to start.
    """

    key: str
    state: BatchState
    reason: str = ""
    is_settled: bool = True
    is_late: bool = False
    version: int | None = None
    num_files: int = 0
    size_bytes: int = 0
    modified: datetime | None = None
    is_doubtful: bool = False


@dataclass(frozen=True)
class Evidence:
    """What the table's history and Dagster say about batches, by key.

    `held` are those in the table, `taken_out` are those that were taken out of it, each with the token of its content
    then, `partitions` Dagster's (None without an instance), `recorded` those that were ever materialized, `requested`
    those of runs that have not ended, `failed` those whose runs failed, also if a later one succeeded, `given_up` those
    that the sensor does not ask for again, each with the time at which its run ended, `refused` the reasons for which
    batches with their present content were set aside, and `changed_since` those of which other content was set aside
    or cancelled.
    """

    held: Mapping[str, IngestedBatch] = field(default_factory=dict)
    taken_out: Mapping[str, str] = field(default_factory=dict)
    partitions: Collection[str] | None = None
    recorded: Container[str] = ()
    requested: Container[str] = ()
    failed: Mapping[str, FailedRuns] = field(default_factory=dict)
    given_up: Mapping[str, datetime] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    changed_since: Container[str] = ()

    @property
    def tokens(self) -> dict[str, str]:
        """The tokens of the batches in the table."""
        return tokens_of(self.held)


@dataclass(frozen=True)
class BatchReport:
    """The states of all batches of a dataset, those that need somebody first, and files that are in no batch.

    If the caller has plain batches only counted, `batches` lacks them: those that are in the table with their present
    content, and are not late.
    """

    batches: tuple[BatchStatus, ...]
    set_aside: tuple[str, ...] = ()
    """Sentences on files that are not read for their name or kind, with the reason."""
    empty: tuple[str, ...] = ()
    """Files of 0 bytes that are left out."""
    num_only_counted: int = 0
    outside: OutsideGlob = OutsideGlob()
    """The files that `raw.glob` leaves out, but for empty and young ones."""
    listing_seconds: float = 0.0
    """How long the listing of the landing folder took."""

    @property
    def counts(self) -> dict[str, int]:
        """How many batches are in each state, and how many are late; states without a batch are left out."""
        counted = Counter(batch.state for batch in self.batches)
        counted[BatchState.INGESTED] += self.num_only_counted
        counts = {state.value: counted[state] for state in BatchState if counted[state]}
        late = sum(batch.is_late for batch in self.batches)
        return counts | ({"late": late} if late else {})

    @property
    def unsettled(self) -> tuple[BatchStatus, ...]:
        """The batches that need somebody."""
        return tuple(batch for batch in self.batches if not batch.is_settled)


def judge_batches(
    raw: RawFiles, landing: Landing, evidence: Evidence, now: datetime, *, count_plain: bool = False
) -> BatchReport:
    """Return the state of every batch that is in the landing folder, in the table, or among Dagster's partitions.

    `count_plain` has plain batches only counted, because a status of each of very many takes memory.
    """
    judge = _Judge(raw, landing, evidence, now)
    found = [judge.landed(batch) for batch in landing.ready if not (count_plain and judge.is_plain(batch))]
    found += [judge.waiting(batch) for batch in landing.waiting if not (count_plain and judge.is_plain(batch))]
    num_only_counted = len(landing.ready) + len(landing.waiting) - len(found)
    found += judge.vanished()
    order = list(BatchState)
    found.sort(key=lambda status: (status.is_settled, order.index(status.state), status.key))
    set_aside = tuple(file.sentence for file in landing.set_aside)
    empty = tuple(map(printable, landing.empty))
    return BatchReport(tuple(found), set_aside, empty, num_only_counted, landing.outside, landing.seconds)


def late_batches(held: Mapping[str, IngestedBatch]) -> set[str]:
    """Return the batches that came into the table after one with a greater key."""
    late: set[str] = set()
    greatest, of_version, version = "", "", 0
    for key, batch in sorted(held.items(), key=lambda item: item[1].first_version):
        if batch.first_version != version:
            greatest, version = max(greatest, of_version), batch.first_version
        if key < greatest:
            late.add(key)
        of_version = max(of_version, key)
    return late


class _Judge:
    """Compares batches with the evidence."""

    def __init__(self, raw: RawFiles, landing: Landing, evidence: Evidence, now: datetime) -> None:
        self._raw, self._landing, self._evidence, self._now = raw, landing, evidence, now
        self._tokens = evidence.tokens
        self._partitions = evidence.partitions or ()
        self._late = late_batches({key: each for key, each in evidence.held.items() if not self._is_later_content(key)})
        self._only_newest = raw.schema_mode is SchemaMode.OVERWRITE
        self._wanted = {batch.key for batch in landing.wanted(raw, self._partitions, lambda: evidence.held)}
        self._newest = landing.newest(self._partitions, evidence.held) if self._only_newest else None

    def is_plain(self, batch: LandedBatch) -> bool:
        """Return whether the state is `INGESTED` and there is nothing else to say."""
        return self._tokens.get(batch.key) == batch.token and batch.key not in self._late

    def landed(self, batch: LandedBatch) -> BatchStatus:
        """Return the state of a batch whose files are complete."""
        evidence = self._evidence
        asked = batch.batch_to_request(self._tokens, self._raw.changed)
        if asked is None:
            return self._in_table(batch)
        if batch.key not in self._wanted:
            return self._status(batch, BatchState.SUPERSEDED, _SUPERSEDED)
        if asked.key in evidence.refused:
            return self._status(batch, BatchState.QUARANTINED, evidence.refused[asked.key], is_settled=False)
        if asked.key in evidence.requested:
            return self._status(batch, BatchState.REQUESTED, "its run has not ended")
        given_up_at = evidence.given_up.get(asked.key)
        is_given_up = given_up_at is not None and batch.was_there(given_up_at)
        if asked.key in evidence.failed and not is_given_up:
            return self._status(batch, BatchState.FAILED, evidence.failed[asked.key].sentence, is_settled=False)
        is_replacing, is_partition = asked.key in self._tokens, asked.key in self._partitions
        recorded = evidence.recorded if is_partition and not is_replacing else ()
        was_taken_out = asked.was_taken_out(evidence.taken_out, recorded)
        if was_taken_out and not is_partition:
            return self._status(batch, BatchState.LANDED, f"{_STAYS_AWAY} {asked.key} and materialize it")
        if not was_taken_out and not (is_given_up if is_replacing else is_partition):
            if batch.key in self._tokens:
                return self._status(batch, BatchState.CHANGED, "its new content is not in the table yet")
            return self._status(batch, BatchState.LANDED, "the sensor asks for it next")
        if asked.key in evidence.changed_since and not (is_given_up or was_taken_out):
            return self._status(
                batch, BatchState.LANDED, "changed since it was left alone: the sensor asks for it next"
            )
        if asked.key in evidence.taken_out and not was_taken_out and asked.key not in evidence.given_up:
            return self._status(batch, BatchState.LANDED, "changed since it was taken out: the sensor asks for it next")
        if was_taken_out:
            reason = "a restore or an overwrite took it out, and no run is under way:"
        elif asked.key in evidence.given_up:
            reason = "no run of it ended well, and none is under way:"
        else:
            reason = "no run of it is found: the sensor asks for it within minutes, or"
        return self._status(
            batch,
            BatchState.FAILED,
            f"{reason} materialize partition {asked.key}",
            is_settled=False,
            is_doubtful=not was_taken_out,
        )

    def waiting(self, batch: LandedBatch) -> BatchStatus:
        """Return the state of a batch whose files may still be written, or that lacks a file which is set aside."""
        if self._tokens.get(batch.key) == batch.token:
            return self._in_table(batch)
        if self._newest is not None and self._newest.order > batch.order:
            return self._status(batch, BatchState.SUPERSEDED, _SUPERSEDED)
        if lacking := self._landing.lacking.get(batch.key):
            reason = lacking
        elif self._raw.marker is not None:
            reason = f"its folder has no {self._raw.marker}"
        elif self._raw.empty == "wait" and any(file.size_bytes == 0 for file in batch.files):
            reason = "a file has 0 bytes: it may still be written"
        elif ahead := [file for file in batch.files if is_in_future(file, self._raw, self._now)]:
            time = f"{ahead[0].modified.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
            reason = f"the time of {printable(ahead[0].path)} is in the future, {time}: write it again, or touch it"
            return self._status(batch, BatchState.WAITING, reason, is_settled=False)
        else:
            return self._status(batch, BatchState.WAITING, f"younger than {self._raw.settle_seconds:g} s")
        most = self._raw.max_wait_hours
        if most is None or self._now - batch.arrived <= timedelta(hours=most):
            return self._status(batch, BatchState.WAITING, reason)
        since = f"it waits since {batch.arrived.astimezone(UTC):%Y-%m-%d %H:%M} UTC"  # an age would be new each time
        remedy = f"{since}, longer than raw.max_wait_hours ({most:g}): complete or remove its files"
        return self._status(batch, BatchState.WAITING, f"{reason}; {remedy}", is_settled=False)

    def vanished(self) -> Iterator[BatchStatus]:
        """Yield the states of batches whose files are not in the landing folder.

        A batch of the table that is no partition counts as ingested.
        """
        evidence = self._evidence
        landed = {batch.key for batch in (*self._landing.ready, *self._landing.waiting)}
        for key in dict.fromkeys((*self._partitions, *evidence.held)):
            if key in landed or self._is_later_content(key):
                continue
            held = evidence.held.get(key)
            if held is None and self._only_newest:
                yield BatchStatus(key, BatchState.SUPERSEDED, f"its files are gone, and {_SUPERSEDED}")
                continue
            if held is not None and evidence.partitions is not None and key not in evidence.partitions:
                yield BatchStatus(
                    key, BatchState.INGESTED, _NO_PARTITION, is_late=key in self._late, version=held.version
                )
                continue
            rows = "the table does not have its rows" if held is None else f"its rows of version {held.version} stay"
            yield BatchStatus(
                key,
                BatchState.VANISHED,
                f"its files are gone; {rows}",
                is_settled=self._raw.vanished == "keep",
                is_late=key in self._late,
                version=None if held is None else held.version,
            )

    def _in_table(self, batch: LandedBatch) -> BatchStatus:
        later = self._evidence.held.get(batch.as_changed().key) if self._raw.changed == "append" else None
        held = later or self._evidence.held[batch.key]
        if held.token != batch.token and later is None:
            reason = (
                f"it changed after version {held.version} ingested it, and is left alone: put the files back, land it "
                "under another name, or set raw.changed"
            )
            return self._status(batch, BatchState.CHANGED, reason, is_settled=False, version=held.version)
        return self._status(batch, BatchState.INGESTED, version=held.version)

    def _is_later_content(self, key: str) -> bool:
        """Return whether a key names content that a batch had after it changed."""
        before = original_key(key)
        return bool(_KEY_OF_CHANGED.search(key)) and (before in self._evidence.held or before in self._partitions)

    def _status(
        self,
        batch: LandedBatch,
        state: BatchState,
        reason: str = "",
        *,
        is_settled: bool = True,
        is_doubtful: bool = False,
        version: int | None = None,
    ) -> BatchStatus:
        """Return the status of a landed batch; it stays late when its files change."""
        size_bytes = sum(file.size_bytes for file in batch.files)
        is_late = batch.key in self._late
        return BatchStatus(
            batch.key,
            state,
            reason,
            is_settled,
            is_late,
            version,
            len(batch.files),
            size_bytes,
            batch.modified,
            is_doubtful,
        )

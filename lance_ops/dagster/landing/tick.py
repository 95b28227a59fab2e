"""Decide, as a pure function, what a tick of the raw-file sensor requests.

Dagster's partition keys say which batches the sensor has seen, so the sensor keeps no list of its own. The cursor is a
watermark in the order of arrival. A known batch above it has changed, or the cursor was lost. The dataset's history
tells the two apart: it alone decides what was ingested. A lost cursor or a repeated tick therefore costs a comparison,
and never a row. So does a batch whose run failed: it is compared again, and asked for again if the table lacks it.

A batch at or below the watermark counts as handled. But every five minutes, all batches are compared with the dataset's
history. The comparison finds:

- files that landed or were rewritten with an older time, as copies that keep times do, also of set-aside batches;
- batches whose runs failed while the sensor was off;
- batches whose partitions were deleted;
- batches without any run. The daemon may have died after it had added a tick's partitions. Or their run asked for a
  range of partitions whose first or last one was deleted, so that the range no longer says which batches it had.

A run that is no longer found may have had the run key of the new one, and Dagster skips a run whose key it knows. So
the new run's key names the hour, too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from lance_ops.core.records import dataclass
from lance_ops.dagster.landing.batch_runs import FailedRuns
from lance_ops.dagster.landing.landing_entries import Changed, LandedBatch
from lance_ops.maintenance import IngestedBatch, tokens_of

__all__ = [
    "Cursor",
    "NeighbouringBatches",
    "Tick",
    "Watermark",
    "batches_to_ask_again",
    "batches_to_compare",
    "batches_to_decide",
    "plan_tick",
    "rewritten_batches",
]

_COMPARISON_INTERVAL = timedelta(minutes=5)


@dataclasses.dataclass(frozen=True, order=True)
class Watermark:
    """A position in the order of arrival."""

    modified: datetime
    key: str

    @property
    def place(self) -> tuple[datetime, str]:
        """The position as `LandedBatch.order` has it."""
        return self.modified, self.key


@dataclass(frozen=True)
class Cursor:
    """The sensor's state: the watermark, and when all batches were compared last."""

    watermark: Watermark | None = None
    compared_at: datetime | None = None

    def is_comparison_due(self, now: datetime) -> bool:
        """Return whether all batches are to be compared with the dataset's history, also those below the watermark."""
        return self.compared_at is None or not timedelta(0) <= now - self.compared_at < _COMPARISON_INTERVAL

    def encode(self) -> str | None:
        """Return the cursor's text; None without a watermark."""
        if self.watermark is None:
            return None
        compared_at = self.compared_at.isoformat() if self.compared_at else None
        place = {"modified": self.watermark.modified.isoformat(), "key": self.watermark.key}
        return json.dumps({**place, "compared_at": compared_at})

    @classmethod
    def decode(cls, text: str | None) -> Cursor:
        """Return what a cursor's text says; a lost or unreadable one says nothing, and starting over is safe."""
        try:
            content = json.loads(text or "null")
            watermark = Watermark(_moment(content["modified"]), str(content["key"]))
            compared_at = content.get("compared_at")
            return cls(watermark, None if compared_at is None else _moment(compared_at))
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@dataclass(frozen=True)
class NeighbouringBatches:
    """Batches that follow each other in Dagster's order of keys; one run ingests them in one commit."""

    batches: tuple[LandedBatch, ...]
    after: tuple[str, ...] = ()
    """The failed runs that were asked for these batches, or the hours in which no run of them was found. Each of them
    leads to one more run at most."""
    replaced_versions: tuple[int, ...] = ()
    """The versions that ingested the content which this run replaces. They are part of the run key, so that content
    which a batch had before is asked for again."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The batches' keys, in Dagster's order."""
        return tuple(batch.key for batch in self.batches)

    @property
    def run_key(self) -> str:
        """The run key, by which Dagster launches a run once: it identifies the batches and their content.

        Its length does not grow with the number of batches: Dagster's storage indexes it, and PostgreSQL refuses to
        index a value above 2.7 KB.
        """
        again = f":after:{_digest(self.after)}" if self.after else ""
        again += f":over:{_digest(self.replaced_versions)}" if self.replaced_versions else ""
        if len(self.batches) == 1:
            return f"{self.batches[0].key}:{self.batches[0].token}{again}"
        digest = hashlib.sha256()
        for batch in self.batches:
            digest.update(f"{batch.key}\0{batch.token}\0".encode())
        return f"{self.keys[0]}...{self.keys[-1]}:{digest.hexdigest()[:32]}{again}"


def _digest(parts: Iterable[object]) -> str:
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Tick:
    """The requests of a tick."""

    new_keys: tuple[str, ...]
    runs: tuple[NeighbouringBatches, ...]
    changed: tuple[LandedBatch, ...]
    watermark: Watermark | None
    num_left: int = 0
    leaves_older: bool = False
    """Whether a batch at or below the watermark before the tick is left for the next one."""


def batches_to_decide(
    ready: Sequence[LandedBatch], known: Sequence[str], watermark: Watermark | None, others: Container[str] = ()
) -> tuple[LandedBatch, ...]:
    """Return the batches that a tick decides on: those above the watermark, and the known ones among `others`."""
    keys = set(known)
    place = None if watermark is None else watermark.place
    return tuple(
        batch for batch in ready if place is None or batch.order > place or (batch.key in others and batch.key in keys)
    )


def batches_to_compare(
    ready: Sequence[LandedBatch], known: Sequence[str], watermark: Watermark | None, others: Container[str] = ()
) -> tuple[LandedBatch, ...]:
    """Return the known batches that must be compared with the history: those above the watermark, and `others`."""
    keys = set(known)
    return tuple(batch for batch in batches_to_decide(ready, known, watermark, others) if batch.key in keys)


def rewritten_batches(ready: Sequence[LandedBatch], held: Mapping[str, IngestedBatch]) -> dict[str, int]:
    """Return the keys of batches that the table holds with other content, each with the version that ingested it."""
    return {
        batch.key: stored.version
        for batch in ready
        if (stored := held.get(batch.key)) is not None and stored.token != batch.token
    }


def batches_to_ask_again(
    compared: Sequence[LandedBatch],
    held: Mapping[str, IngestedBatch],
    failed: Mapping[str, FailedRuns],
    left_alone: Container[str],
    changed: Changed,
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the failed and the rewritten ones among the compared batches, as `plan_tick` takes them.

    `failed` and `left_alone` have the keys of batches as a run would be asked for them. Left alone are those that were
    set aside, those whose run is under way or failed a moment ago, and those that only a person may ask for. A failed
    batch is left alone, too, after its fifth failure in a day, also if it was rewritten before.
    """
    tokens = tokens_of(held)
    rewritten = rewritten_batches(compared, held)
    again: dict[str, str] = {}
    for batch in compared:
        asked = batch.batch_to_request(tokens, changed)
        if asked is None:
            if changed != "refuse":  # `plan_tick` reports batches that changed and are refused
                rewritten.pop(batch.key, None)
            continue
        runs = failed.get(asked.key)
        if (runs is not None and runs.are_many) or (asked.key in left_alone):
            rewritten.pop(batch.key, None)
        elif runs is not None:
            again[batch.key] = again[asked.key] = runs.newest
    return again, rewritten


def plan_tick(
    ready: Sequence[LandedBatch],
    known: Sequence[str],
    watermark: Watermark | None,
    tokens: Mapping[str, str],
    *,
    max_files: int,
    changed: Changed = "refuse",
    failed: Mapping[str, str] | None = None,
    rewritten: Mapping[str, int] | None = None,
    taken_out: Mapping[str, str] | None = None,
    left_alone: Container[str] = (),
) -> Tick:
    """Decide which of the ready batches to ingest now; the order of the batches is kept.

    `known` are Dagster's keys in its own order. `tokens` are those of batches in the table, by key, at least of
    `batches_to_compare`. `failed` maps keys of batches, also those that they had before they changed, to the runs
    that failed to ingest them, or to the hour in which no run of them is found. `rewritten` are `rewritten_batches`.
    `taken_out` are the batches that were taken out of the table, with their tokens. With this content only a person
    asks for them, unless a run of theirs `failed` since. The batches that are `left_alone` are not asked for either,
    though the cursor may be lost. A batch of the table that is not known is asked for, so that its partition records
    it. A tick takes at least one batch, however many files it has.
    """
    failed, rewritten, taken_out = failed or {}, rewritten or {}, taken_out or {}
    known_keys = set(known)
    compared = {batch.key for batch in batches_to_compare(ready, known, watermark, {*failed, *rewritten})}
    candidates = [batch for batch in ready if batch.key not in known_keys or batch.key in compared]
    wanted: list[LandedBatch] = []
    differing: list[LandedBatch] = []
    reached = watermark
    num_files = num_seen = 0
    for batch in candidates:
        asked = batch.batch_to_request(tokens, changed)
        if asked is None and batch.key not in known_keys:
            asked = batch
        elif asked is not None and (
            asked.key in left_alone or (asked.key not in failed and taken_out.get(asked.key) == asked.token)
        ):
            asked = None
        if asked is None and changed == "refuse" and tokens.get(batch.key, batch.token) != batch.token:
            differing.append(batch)
        elif asked is not None:
            if wanted and num_files + len(batch.files) > max_files:
                break
            wanted.append(asked)
            num_files += len(batch.files)
        num_seen += 1
        place = Watermark(*batch.order)
        reached = max(reached, place) if reached else place
    new_keys = tuple(batch.key for batch in wanted if batch.key not in known_keys)
    runs = _runs(wanted, [*known, *new_keys], failed, rewritten)
    left = candidates[num_seen:]
    leaves_older = watermark is not None and any(batch.order <= watermark.place for batch in left)
    return Tick(new_keys, runs, tuple(differing), reached, len(left), leaves_older)


def _runs(
    wanted: Sequence[LandedBatch],
    key_order: Sequence[str],
    failed: Mapping[str, str],
    rewritten: Mapping[str, int],
) -> tuple[NeighbouringBatches, ...]:
    position = {key: index for index, key in enumerate(key_order)}
    runs: list[list[LandedBatch]] = []
    for batch in sorted(wanted, key=lambda batch: position[batch.key]):
        if runs and position[batch.key] == position[runs[-1][-1].key] + 1:
            runs[-1].append(batch)
        else:
            runs.append([batch])
    return tuple(
        NeighbouringBatches(
            tuple(run),
            tuple(sorted({failed[batch.key] for batch in run if batch.key in failed})),
            tuple(sorted({rewritten[batch.key] for batch in run if batch.key in rewritten})),
        )
        for run in runs
    )

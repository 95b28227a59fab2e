"""Record ingestion batches in a commit's transaction, find those that a table holds, and checkpoint them for clean-up.

A commit that ingests batches records them in its transaction's properties, `lance_ops.batch.<key>` = token. Before
clean-up removes old versions with their transactions, it writes a checkpoint of what they recorded up to a version:

    _lance_ops/batches/{version:020}.json
        [{"version": 7, "batches": {"<key>": "<token>"}, "back_to": null, "committed_at": "<ISO 8601>"}, …]

newest first. A checkpoint of an earlier release lacks `committed_at`. The newest checkpoint and the transactions after
it hold the whole history. A batch that a restore or an overwrite took out of the table may be ingested again, and a
later restore may bring it back. Therefore a checkpoint keeps the events, not the state after them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from typing import Any

from lance_ops.core.errors import CorruptFile, ObjectNotFound
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.transactions import (
    BATCH_PREFIX,
    CommittedVersion,
    is_in_history,
    read_manifest,
    version_set_back_to,
    versions_newest_first,
)

__all__ = [
    "BatchEvent",
    "BatchHistory",
    "IngestedBatch",
    "NumberedBatch",
    "batch_event",
    "batch_events_after",
    "batch_history",
    "batch_properties",
    "batches_of",
    "checkpoint_batches",
    "has_checkpoint",
    "ingested_batches",
    "last_numbered_batch",
    "recorded_event",
    "tokens_of",
]

_CHECKPOINT_DIR = "_lance_ops/batches"
_NUMBER = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True)
class IngestedBatch:
    """The token of a batch's content, the version that added its rows, and the first one that added any of the batch.

    The two versions differ if the batch was replaced. `committed_at` is when the version that added its rows was
    committed. It is None if the history does not state it.
    """

    token: str
    version: int
    first_version: int
    committed_at: datetime | None = None


@dataclass(frozen=True)
class BatchHistory:
    """The batches that a table ever ingested, by key.

    `held` are those whose rows are in the table. `taken_out` are those whose last content restores and overwrites took
    out, and did not bring back, each with the token of that content. A batch is in both if a restore brought back an
    earlier content of it. `set_back_at` is when the last restore or overwrite was committed, which is after each of
    them was ingested. It is None if there was none, or if the history does not tell.
    """

    held: Mapping[str, IngestedBatch] = field(default_factory=dict)
    taken_out: Mapping[str, str] = field(default_factory=dict)
    set_back_at: datetime | None = None


@dataclass(frozen=True)
class NumberedBatch:
    """A batch `name/number`: its number, its token, and the version that added its rows."""

    number: int
    token: str
    version: int


@dataclass(frozen=True)
class BatchEvent:
    """A version that ingested batches, or that set the table back to an earlier version (0: the empty table)."""

    version: int
    batches: Mapping[str, str]
    back_to: int | None
    committed_at: datetime | None = None


def batch_properties(tokens: Mapping[str, str]) -> dict[str, str]:
    """Return the transaction properties that record these batches (key to token)."""
    return {f"{BATCH_PREFIX}{key}": token for key, token in tokens.items()}


def batches_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the batches, key to token, that a transaction's properties name."""
    return {
        name.removeprefix(BATCH_PREFIX): token for name, token in properties.items() if name.startswith(BATCH_PREFIX)
    }


def ingested_batches(snapshot: Snapshot) -> dict[str, IngestedBatch]:
    """Return by key the batches whose rows are in the table at this version."""
    return _held(_events(snapshot), snapshot.version)


def tokens_of(held: Mapping[str, IngestedBatch]) -> dict[str, str]:
    """Return the tokens of the batches that `ingested_batches` found, by key."""
    return {key: batch.token for key, batch in held.items()}


def batch_history(snapshot: Snapshot) -> BatchHistory:
    """Return the batches that the table holds at this version, and those that were taken out of it before."""
    events = [event for event in _events(snapshot) if event.version <= snapshot.version]
    held = _held(events, snapshot.version)
    last = {key: token for event in reversed(events) for key, token in event.batches.items()}
    taken_out = {key: token for key, token in last.items() if key not in held or held[key].token != token}
    set_back_at = next((event.committed_at for event in events if event.back_to is not None), None)
    return BatchHistory(held, taken_out, set_back_at)


def _held(events: Iterable[BatchEvent], version: int) -> dict[str, IngestedBatch]:
    """Return the batches in the table at a version, by its events up to then, the newest first."""
    found: dict[str, IngestedBatch] = {}
    for event in _that_count(events, version):
        for key, token in event.batches.items():
            newer = found.get(key)
            if newer is None:
                found[key] = IngestedBatch(token, event.version, event.version, event.committed_at)
            else:
                found[key] = replace(newer, first_version=event.version)
    return found


def last_numbered_batch(snapshot: Snapshot, name: str) -> NumberedBatch | None:
    """Return the batch `name/number` whose rows came last into the table of this version; None if it has none.

    The versions are read newest first, and none that is older than the batch.
    """
    while True:
        checkpoint = _newest_checkpoint(snapshot.store)
        events = _that_count(_newest_first(snapshot, checkpoint), snapshot.version)
        found = next((batch for event in events for batch in _numbered(event, name)), None)
        if _newest_checkpoint(snapshot.store) == checkpoint:
            return found


def batch_event(snapshot: Snapshot, committed: CommittedVersion, after: CommittedVersion | None) -> BatchEvent | None:
    """Return the event of a version; None if it has none or is stray. `after` is the next retained version, if any."""
    event = recorded_event(committed)
    read = partial(read_manifest, snapshot.store, snapshot.committer)
    return event if event is not None and is_in_history(committed, after, read) else None


def batch_events_after(snapshot: Snapshot, version: int) -> list[BatchEvent] | None:
    """Return the events of the versions after `version` up to this one, newest first; older versions are not read.

    None if they do not tell all that came since: a clean-up may have removed one, or `version` is gone or stray.
    """
    if _newest_checkpoint(snapshot.store) > version:
        return None
    events: list[BatchEvent] = []
    after: CommittedVersion | None = None
    for committed in versions_newest_first(
        snapshot.store, snapshot.committer, down_to=version, up_to=snapshot.version, to_the_end=True
    ):
        event = batch_event(snapshot, committed, after)
        if committed.version > version:
            events.extend([] if event is None else [event])
        elif event is None and recorded_event(committed) is not None:
            return None
        after = committed
    is_whole = after is not None and after.version == version and _newest_checkpoint(snapshot.store) <= version
    return events if is_whole else None


def recorded_event(committed: CommittedVersion) -> BatchEvent | None:
    """Return the event that a version records, also if it is stray; None if it records none."""
    stored = committed.stored_transaction
    if stored is None:
        return None
    batches, back_to = batches_of(stored.properties), version_set_back_to(committed)
    if not batches and back_to is None:
        return None
    return BatchEvent(committed.version, batches, back_to, committed.manifest.timestamp)


def checkpoint_batches(store: Store, version: int, events: Iterable[BatchEvent]) -> None:
    """Write a durable checkpoint at a version, so that older versions may be removed.

    `events` are those of the versions up to this one, newest first, which the caller has read before this call. A
    version that another clean-up had removed by then is in the checkpoint that is read now. Nothing is written for a
    table that never ingested a batch: the other events only say which batches count.
    """
    newest, older = _read_newest_checkpoint(store)
    known = [*(event for event in events if event.version > newest), *older]
    if newest >= version or not any(event.batches for event in known):
        return
    store.put(_path(version), json.dumps([_to_json(event) for event in known]).encode())
    for earlier in _checkpoints(store):
        if earlier < version:
            store.delete(_path(earlier))


def has_checkpoint(store: Store) -> bool:
    """Return whether a clean-up wrote down batches of the table."""
    return bool(_checkpoints(store))


def _numbered(event: BatchEvent, name: str) -> Iterator[NumberedBatch]:
    for key, token in event.batches.items():
        beginning, _, number = key.rpartition("/")
        if beginning == name and _NUMBER.fullmatch(number):
            yield NumberedBatch(int(number), token, event.version)


def _that_count(events: Iterable[BatchEvent], version: int) -> Iterator[BatchEvent]:
    """Yield those of the events, newest first, whose batches are in the table at a version."""
    for event in events:
        if event.version > version:
            continue
        yield event
        if event.back_to is not None:
            version = event.back_to
        if not version:  # the table was empty, so no older event counts
            return


def _events(snapshot: Snapshot) -> list[BatchEvent]:
    """Return the events, newest first.

    A clean-up writes its checkpoint before it removes a version. If the newest checkpoint is the same before and after
    the transactions are read, no version was missed.
    """
    while True:
        checkpoint, older = _read_newest_checkpoint(snapshot.store)
        newer = list(_events_since(snapshot, checkpoint, to_the_end=True))
        if _newest_checkpoint(snapshot.store) == checkpoint:
            return [*newer, *older]


def _newest_first(snapshot: Snapshot, checkpoint: int) -> Iterator[BatchEvent]:
    """Yield the events newest first, and read what is older only if the caller asks for it; see `_events`."""
    yield from _events_since(snapshot, checkpoint, to_the_end=False)
    yield from _read_newest_checkpoint(snapshot.store)[1]


def _events_since(snapshot: Snapshot, checkpoint: int, *, to_the_end: bool) -> Iterator[BatchEvent]:
    """Yield the events after a checkpoint, newest first, without those of stray versions."""
    store, committer = snapshot.store, snapshot.committer
    after: CommittedVersion | None = None
    for committed in versions_newest_first(store, committer, down_to=checkpoint + 1, to_the_end=to_the_end):
        event = batch_event(snapshot, committed, after)
        if event is not None:
            yield event
        after = committed


def _read_newest_checkpoint(store: Store) -> tuple[int, list[BatchEvent]]:
    """Return the newest checkpoint's version and its events, newest first; (0, []) if there is none.

    A concurrent clean-up may delete it after it was listed: then a newer one is read.
    """
    while True:
        version = _newest_checkpoint(store)
        if not version:
            return 0, []
        try:
            data = store.get(_path(version)).to_pybytes()
        except ObjectNotFound:
            continue
        try:
            return version, [_from_json(event) for event in json.loads(data)]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptFile(store.uri_of(_path(version)), "checkpoint", f"not batch events: {error!r}") from error


def _to_json(event: BatchEvent) -> dict[str, Any]:
    return {
        "version": event.version,
        "batches": dict(event.batches),
        "back_to": event.back_to,
        "committed_at": None if event.committed_at is None else event.committed_at.isoformat(),
    }


def _from_json(event: Mapping[str, Any]) -> BatchEvent:
    committed_at = event.get("committed_at")
    return BatchEvent(
        int(event["version"]),
        dict(event["batches"]),
        event["back_to"],
        None if committed_at is None else datetime.fromisoformat(committed_at),
    )


def _newest_checkpoint(store: Store) -> int:
    """Return the version of the newest checkpoint; 0 if there is none."""
    return max(_checkpoints(store), default=0)


def _checkpoints(store: Store) -> list[int]:
    stems = [name.removesuffix(".json") for name in store.list_names(_CHECKPOINT_DIR) if name.endswith(".json")]
    return [int(stem) for stem in stems if stem.isdigit()]


def _path(version: int) -> str:
    return f"{_CHECKPOINT_DIR}/{version:020d}.json"

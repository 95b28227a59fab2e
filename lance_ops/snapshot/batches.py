"""Which ingestion batches a table holds, so that none is ingested twice.

A commit that ingests batches says so in its transaction's properties, `lance_ops.batch.<key>` = token. Clean-up
removes old versions with their transactions; before it does, it writes a checkpoint of all batches as of a version:

    _lance_ops/batches/{version:020}.json      {"<key>": {"token": "<token>", "version": <that added it>}, …}

The newest checkpoint and the transactions after it are all one needs to read. What a restore or an overwrite took out
of the table is not in it any more, and may be ingested again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from lance_ops.core.errors import CorruptFile, ObjectNotFound
from lance_ops.snapshot.history import history
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.store import Store
from lance_ops.transactions import BATCH_PREFIX, Overwrite, Restore

__all__ = [
    "IngestedBatch",
    "batch_properties",
    "batches_of",
    "checkpoint_batches",
    "ingested_batches",
]

_CHECKPOINT_DIR = "_lance_ops/batches"


@dataclass(frozen=True)
class IngestedBatch:
    """The content's token of a batch and the version that added its rows."""

    token: str
    version: int


def batch_properties(tokens: Mapping[str, str]) -> dict[str, str]:
    """Return the transaction properties that say these batches (key to token) were ingested."""
    return {f"{BATCH_PREFIX}{key}": token for key, token in tokens.items()}


def batches_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the batches, key to token, that a transaction's properties name."""
    return {
        name.removeprefix(BATCH_PREFIX): token for name, token in properties.items() if name.startswith(BATCH_PREFIX)
    }


def ingested_batches(snapshot: Snapshot) -> dict[str, IngestedBatch]:
    """Return every batch, by key, whose rows this snapshot's table was given."""
    checkpoint_version, checkpoint = _newest_checkpoint(snapshot)
    found: dict[str, IngestedBatch] = {}
    newest_valid = snapshot.version
    for past in history(snapshot):
        if past.version <= checkpoint_version:
            break
        if past.version > newest_valid or past.transaction is None:
            continue
        for key, token in batches_of(past.transaction.properties).items():
            found.setdefault(key, IngestedBatch(token, past.version))
        match past.transaction.operation:
            case Restore(version=restored):
                newest_valid = restored
            case Overwrite():
                return found
    older = {key: batch for key, batch in checkpoint.items() if batch.version <= newest_valid}
    return older | found


def checkpoint_batches(snapshot: Snapshot) -> None:
    """Write down, durably, all batches as of this snapshot, so that its history may be removed."""
    batches = ingested_batches(snapshot)
    if not batches:
        return
    content = {key: {"token": batch.token, "version": batch.version} for key, batch in batches.items()}
    path = _path(snapshot.version)
    snapshot.store.put(path, json.dumps(content, sort_keys=True).encode())
    for version in _checkpoints(snapshot.store):
        if version < snapshot.version:
            snapshot.store.delete(_path(version))


def _newest_checkpoint(snapshot: Snapshot) -> tuple[int, dict[str, IngestedBatch]]:
    """Return the newest checkpoint no newer than the snapshot; a concurrent clean-up may replace it meanwhile."""
    while True:
        version = max((v for v in _checkpoints(snapshot.store) if v <= snapshot.version), default=0)
        if not version:
            return 0, {}
        try:
            data = snapshot.store.get(_path(version)).to_pybytes()
        except ObjectNotFound:
            continue
        try:
            content = json.loads(data)
            return version, {
                key: IngestedBatch(str(batch["token"]), int(batch["version"])) for key, batch in content.items()
            }
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptFile(snapshot.store.uri_of(_path(version)), "checkpoint", f"not batches: {error!r}") from error


def _checkpoints(store: Store) -> list[int]:
    stems = [name.removesuffix(".json") for name in store.list_names(_CHECKPOINT_DIR) if name.endswith(".json")]
    return [int(stem) for stem in stems if stem.isdigit()]


def _path(version: int) -> str:
    return f"{_CHECKPOINT_DIR}/{version:020d}.json"

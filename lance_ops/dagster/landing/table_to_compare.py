"""Read of a table what landed batches are compared with, each at most once, and only when it is asked for."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime

from lance_ops.core.cached_property import cached_property
from lance_ops.dagster.declaration import RawFiles
from lance_ops.dagster.landing.landing_entries import LandedBatch, Landing
from lance_ops.dagster.landing.tick import Watermark
from lance_ops.dagster.opening import OpenNewest
from lance_ops.maintenance import BatchHistory, batch_history, time_of_ingestion
from lance_ops.snapshot import Snapshot

__all__ = ["TableToCompare", "taken_out_unchanged", "whole_table"]


class TableToCompare:
    """The newest version of a table, as `open_newest` opens it."""

    def __init__(self, open_newest: OpenNewest) -> None:
        self._open_newest = open_newest

    @cached_property
    def history(self) -> BatchHistory:
        """The batches that the table ever ingested; empty for a dataset that does not exist."""
        return batch_history(self._newest) if self._newest else BatchHistory()

    @cached_property
    def held_at(self) -> datetime | None:
        """When the last of the batches in the table came into it."""
        return time_of_ingestion(self._newest, self.history.held) if self._newest else None

    def has_version_since(self, moment: datetime) -> bool:
        """Return whether a version may have been committed since."""
        made_at = self._newest.manifest.timestamp if self._newest else None
        return self._newest is not None and (made_at is None or made_at >= moment)

    @cached_property
    def _newest(self) -> Snapshot | None:
        return self._open_newest()


def whole_table(
    landing: Landing,
    raw: RawFiles,
    known: Sequence[str],
    watermark: Watermark | None,
    table: TableToCompare,
    *,
    is_compared: bool,
) -> tuple[LandedBatch, ...]:
    """Return the batch that is to be the whole table, if it is ready, as `Landing.wanted` does.

    The watermark tells a newer batch from an older one that the sensor has passed over. The table's history is read
    only if the newest batch `is_compared` with it, or if neither the watermark nor Dagster's partitions tell.
    """
    if not landing.ready:
        return ()
    newest = landing.ready[-1]
    is_newer = watermark is not None and newest.order > (watermark.modified, watermark.key)
    if watermark is not None and not is_newer and newest.key not in known:
        return ()
    waits = bool(landing.waiting) and landing.waiting[-1].order > newest.order
    if watermark is not None and not waits and not is_compared:
        return (newest,)
    return landing.wanted(raw, known, table.history.held, None if is_newer else table.held_at)


def taken_out_unchanged(
    ready: Sequence[LandedBatch],
    known: Sequence[str],
    again: Container[str],
    table: TableToCompare,
    *,
    is_read: bool,
) -> set[str]:
    """Return the keys of batches that were taken out of the table, and that have the content which they had then.

    Only a person asks for them, unless a run of theirs failed since, so that they are in `again`. If the history is not
    read yet (`is_read`), it is read only for batches that are not `known` and may have been in the table: somebody
    deleted their partitions, or Dagster's storage was lost.
    """
    if not is_read:
        keys = set(known)
        unknown = [batch.modified for batch in ready if batch.key not in keys]
        if not unknown or not table.has_version_since(min(unknown)):
            return set()
    taken_out = table.history.taken_out
    found = (batch for batch in ready if batch.key in taken_out and batch.key not in again)
    return {batch.key for batch in found if batch.token == taken_out[batch.key]}

"""Find the rows that have a key of a source by tasks, which read the source and the table's key columns.

This process gets numbers and a few rows, or the distinct keys of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_ops.api import LanceDataset
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.core.records import dataclass
from lance_ops.reading import ScanRequest, scan_rows, take_addresses
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import SnapshotReference
from lance_ops.verbs.rows.by_keys.matched_keys import ComingRows, FirstRows, MatchedKeys
from lance_ops.verbs.sections import SAMPLE_ROWS
from lance_ops.verbs.sources import (
    distinct_keys,
    fit_keys,
    is_dataset,
    key_names,
    no_keys,
    open_source,
    source_bytes,
    source_rows,
)
from lance_ops.writing import TaskShare, share_rows

__all__ = ["match_by_tasks", "read_distinct_keys"]


def match_by_tasks(
    data: LanceDataset,
    runner: Runner,
    source: by_tasks.SourceRows,
    on: tuple[str, ...],
    unmatched_where: str | None,
    *,
    shows_source: bool,
) -> MatchedKeys:
    """Count as `given_keys.match_keys` does. The tasks leave files beneath the table's `data`, which are removed."""
    counts = by_tasks.count_matches(
        data.snapshot,
        on,
        source,
        runner,
        unmatched=unmatched_where,
        num_first=SAMPLE_ROWS,
        counts_source=shows_source,
    )
    matched, unmatched = (FirstRows(each.count, each.first) for each in (counts.matched, counts.unmatched))
    if not shows_source:
        return MatchedKeys(matched, unmatched)
    return MatchedKeys(matched, unmatched, _coming(source, counts))


def read_distinct_keys(data: LanceDataset, runner: Runner, files: Sequence[str], on: tuple[str, ...]) -> pa.Table:
    """Return the distinct keys of raw files or of datasets, in the types of the table.

    This process holds them all, and a task those of a file or of a part of a dataset. No key is written anywhere.
    Raises as `given_keys.read_keys` does.
    """
    on = tuple(dict.fromkeys(on))
    parts = [part for file in files for part in _parts(data, file)]
    sizes = (source_bytes(data, file) for file in files)
    job = Job.on("read keys for", data.uri, data.version, size_bytes=sum(sizes))
    found = runner.map(_ReadKeys(SnapshotReference.of(data.snapshot), on), parts, job)
    return distinct_keys(pa.concat_tables([no_keys(data, on), *found]))


def _coming(source: by_tasks.SourceRows, counts: by_tasks.MatchCounts) -> ComingRows:
    opened = source.version.open()
    first = LanceDataset.of(opened).to_table(limit=SAMPLE_ROWS)
    addresses = np.unique(counts.matched.sources)
    replacing = take_addresses(opened, addresses, ScanRequest(opened.schema)) if len(addresses) else first.slice(0, 0)
    return ComingRows(opened.num_rows, opened.num_rows - counts.num_source_rows, first, replacing)


@dataclass(frozen=True)
class _KeyPart:
    """A raw file, or rows of a version of a dataset."""

    file: str
    version: SnapshotReference | None = None
    share: TaskShare | None = None


def _parts(data: LanceDataset, file: str) -> list[_KeyPart]:
    if not is_dataset(file):
        return [_KeyPart(file)]
    opened = open_source(data, file).snapshot
    reference = SnapshotReference.of(opened)
    return [_KeyPart(file, reference, share) for share in share_rows(opened, None)]


@dataclass(frozen=True)
class _ReadKeys:
    """Reads the distinct keys of a part of a source."""

    table: SnapshotReference
    on: tuple[str, ...]

    def __call__(self, part: _KeyPart) -> pa.Table:
        data = LanceDataset.of(self.table.open())
        fitted = (fit_keys(data, part.file, self.on, rows) for rows in self._rows(data, part))
        return distinct_keys(pa.concat_tables([no_keys(data, self.on), *fitted]))

    def _rows(self, data: LanceDataset, part: _KeyPart) -> Iterator[pa.Table]:
        names = key_names(data, self.on)
        if part.version is None or part.share is None:
            yield from source_rows(data, part.file, names)
            return
        source = part.version.open()
        request = part.share.request(source, source.schema.project(names))
        yield from (rows.table for rows in scan_rows(source, request))

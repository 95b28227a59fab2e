"""Share the rows that data names among buckets of fragments: a task holds the addresses of one bucket, the driver none.

A fragment is never split between buckets.

    RowBuckets.of      a bucket is a range of fragments, for about a million named rows
    RowBuckets.write   a task shares pairs of addresses out: of a named row, and of the row that has its values
    RowBuckets.order   a task for each bucket orders its pairs by the named row, and writes those of each fragment
    RowBuckets.count   a task for each bucket counts the named rows of each fragment

A row that is named twice, or that is not there, is refused. What a step leaves for the next is in files: 16 bytes for
each pair. The driver gets eight bytes for each file and bucket, then a few numbers for each fragment with a named row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lance_ops.changing.merge_insert import by_tasks
from lance_ops.changing.merge_insert.by_tasks import Segment, SegmentFile
from lance_ops.changing.row_lookup import live_rows
from lance_ops.core.addresses import fragment_of
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference

__all__ = ["OrderedPairs", "RowBuckets"]

_PAIRS_PER_BUCKET = 1 << 20

_MOST_MESSAGE_BYTES = 512 << 20
"""What all tasks together may tell the driver of their pairs: half of what Spark allows the outcomes of a job."""


@dataclass(frozen=True)
class OrderedPairs:
    """Where each fragment's ordered pairs are; `offsets` has its rows as serialized Roaring bitmaps."""

    segments: Mapping[int, Segment]
    offsets: Mapping[int, bytes]
    num_rows: int


@dataclass(frozen=True, eq=False)
class RowBuckets:
    """The buckets of a version's rows: `firsts` has the first fragment of each. Their files are in `folder`."""

    target: SnapshotReference
    firsts: Uint64Array
    folder: str

    @classmethod
    def of(cls, snapshot: Snapshot, num_rows: int, num_files: int = 1) -> RowBuckets:
        """Return buckets for about this many named rows, with a folder of their own, which the caller clears.

        `num_files` is how many files of pairs all tasks write, about. If what tasks tell of them would take more than
        512 MiB, there are fewer and larger buckets.
        """
        ids = np.array(sorted(snapshot.fragments_by_id), np.uint64)
        most = min(len(ids), _MOST_MESSAGE_BYTES // (by_tasks.BYTES_OF_END * num_files))
        num_buckets = max(1, min(most, -(-num_rows // _PAIRS_PER_BUCKET)))
        firsts = [part[0] if len(part) else 0 for part in np.array_split(ids, num_buckets)]
        return cls(SnapshotReference.of(snapshot), np.array(firsts, np.uint64), by_tasks.new_folder())

    @property
    def message_bytes(self) -> int:
        """How many bytes the outcome of a task that wrote pairs takes."""
        return len(self.firsts) * by_tasks.BYTES_OF_END

    def write(self, target: Snapshot, left: Uint64Array, right: Uint64Array) -> SegmentFile:
        """Write one segment of pairs for each bucket.

        `left` has the addresses of the named rows, `right` those of the rows with their values. `count` does not look
        at `right`: who only counts passes `left` again.
        """
        buckets = np.searchsorted(self.firsts[1:], fragment_of(left), side="right")
        order, ends = by_tasks.order_by_bucket(buckets, len(self.firsts))
        return _write(target, self.folder, left[order], right[order], ends)

    def order(
        self, target: Snapshot, files: Sequence[SegmentFile], runner: Runner, *, with_offsets: bool
    ) -> list[OrderedPairs]:
        """Write the pairs of each fragment as one segment; `with_offsets` asks for the rows as bitmaps, too.

        Raises `InvalidInput` as `live_rows` does.
        """
        job = Job.on("order rows of", target.uri, target.version)
        return runner.map(_OrderPairs(self.target, self.folder, with_offsets), self._pairs(files), job)

    def count(self, target: Snapshot, files: Sequence[SegmentFile], runner: Runner) -> dict[int, int]:
        """Return how many rows of each fragment are named; raise `InvalidInput` as `live_rows` does."""
        tasks = self._pairs(files)
        size_bytes = sum(segment.stop - segment.start for segments in tasks for segment in segments)
        job = Job.on("count named rows of", target.uri, target.version, size_bytes=size_bytes)
        counted = runner.map(_CountRows(self.target), tasks, job)
        return {key: num_rows for each in counted for key, num_rows in each.items()}

    def clear(self, target: Snapshot) -> None:
        """Remove the files, or leave them to clean-up."""
        target.store.child(self.folder).clear_or_leave()

    def _pairs(self, files: Sequence[SegmentFile]) -> list[tuple[Segment, ...]]:
        """Return the segments of each bucket that has any."""
        buckets = (by_tasks.segments_of(files, bucket) for bucket in range(len(self.firsts)))
        return [segments for segments in buckets if segments]


@dataclass(frozen=True)
class _OrderPairs:
    """Writes the pairs of a bucket, ascending by the named row."""

    target: SnapshotReference
    folder: str
    with_offsets: bool

    def __call__(self, pairs: tuple[Segment, ...]) -> OrderedPairs:
        snapshot = self.target.open()
        left, right = by_tasks.decode_pairs(by_tasks.read_segments(snapshot, pairs))
        order = np.argsort(left)
        left, right = left[order], right[order]
        located = live_rows(snapshot, left)
        ends = np.cumsum([len(rows) for rows in located.values()], dtype=np.int64)
        file = _write(snapshot, self.folder, left, right, ends)
        segments = {fragment_id: file.segment(number) for number, fragment_id in enumerate(located)}
        offsets = {key: rows.serialize() for key, rows in located.items()} if self.with_offsets else {}
        return OrderedPairs(segments, offsets, len(left))


@dataclass(frozen=True)
class _CountRows:
    """Counts the named rows of a bucket by fragment."""

    target: SnapshotReference

    def __call__(self, pairs: tuple[Segment, ...]) -> dict[int, int]:
        snapshot = self.target.open()
        named, _ = by_tasks.decode_pairs(by_tasks.read_segments(snapshot, pairs))
        return {key: len(rows) for key, rows in live_rows(snapshot, np.sort(named)).items()}


def _write(target: Snapshot, folder: str, left: Uint64Array, right: Uint64Array, ends: Int64Array) -> SegmentFile:
    """Write pairs as segments that end at these positions."""
    starts = [0, *ends[:-1]]
    segments = [
        by_tasks.encode_pairs(left[start:end], right[start:end]) for start, end in zip(starts, ends, strict=True)
    ]
    return by_tasks.write_segments(target.store, folder, segments)

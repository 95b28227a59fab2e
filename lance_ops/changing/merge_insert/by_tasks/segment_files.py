"""Files that tasks leave for the tasks of the next step: one file of many segments, each for one reader.

A task writes one file where it would else write one for each reader, and each reader fetches one range of it. The files
are in a folder beneath the table's `data`, which the merge removes. Clean-up removes one that a crash left, by age.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from lance_ops.core.file_names import DATA_DIR
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.core.records import dataclass
from lance_ops.core.threads import map_ordered
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store

__all__ = [
    "BYTES_OF_END",
    "BYTES_OF_PAIR",
    "Segment",
    "SegmentFile",
    "decode_pairs",
    "decode_table",
    "encode_pairs",
    "encode_table",
    "new_folder",
    "read_segments",
    "segments_of",
    "write_segments",
]

BYTES_OF_PAIR = 16
"""What a pair of row addresses takes."""

BYTES_OF_END = 8
"""What a segment takes in the outcome of the task that wrote it."""

_READ_AHEAD = 16


class Segment(NamedTuple):
    """The bytes of a file from `start` to `stop`."""

    path: str
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class SegmentFile:
    """A file of segments one after the other; `ends[i]` is where segment `i` ends, in bytes."""

    path: str
    ends: Int64Array

    def segment(self, number: int) -> Segment:
        """Return where a segment is."""
        return Segment(self.path, int(self.ends[number - 1]) if number else 0, int(self.ends[number]))


def new_folder() -> str:
    """Return a fresh folder for the files of one merge, relative to the table's root."""
    return f"{DATA_DIR}/merge-{uuid.uuid4().hex}"


def write_segments(store: Store, folder: str, segments: Sequence[Sequence[pa.Buffer]]) -> SegmentFile:
    """Write a file; each segment is given as the buffers that it consists of."""
    path = f"{folder}/{uuid.uuid4().hex}.segments"
    ends = []
    with store.open_writer(path, durable=False) as writer:
        for buffers in segments:
            for buffer in buffers:
                writer.write(buffer)
            ends.append(writer.tell())
    return SegmentFile(path, np.array(ends, np.int64))


def segments_of(files: Sequence[SegmentFile], number: int) -> tuple[Segment, ...]:
    """Return one reader's segments of all files, without empty ones."""
    found = (file.segment(number) for file in files)
    return tuple(segment for segment in found if segment.stop > segment.start)


def read_segments(snapshot: Snapshot, segments: Sequence[Segment]) -> Iterator[pa.Buffer]:
    """Yield the bytes of each segment; segments in a remote store are fetched concurrently."""
    store = snapshot.store
    workers = 1 if store.reads_in_place else min(snapshot.calls_at_once, len(segments))
    return map_ordered(lambda each: store.get_range(*each), segments, workers, _READ_AHEAD)


def encode_table(table: pa.Table) -> pa.Buffer:
    """Return a table as a stream of Arrow's IPC format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def decode_table(data: pa.Buffer) -> pa.Table:
    """Read what `encode_table` wrote."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


def encode_pairs(left: Uint64Array, right: Uint64Array) -> list[pa.Buffer]:
    """Return pairs of row addresses: all left ones, then all right ones, eight little-endian bytes each."""
    return [pa.py_buffer(np.ascontiguousarray(side, "<u8")) for side in (left, right)] if len(left) else []


def decode_pairs(parts: Iterator[pa.Buffer]) -> tuple[Uint64Array, Uint64Array]:
    """Join what `encode_pairs` wrote in several segments."""
    sides = [np.frombuffer(part, "<u8").reshape(2, -1) for part in parts]
    both = np.concatenate([np.empty((2, 0), np.uint64), *sides], axis=1)
    return both[0], both[1]

"""Sequences of one u64 a physical row: stable row ids, and the versions that brought or last changed rows.

A row id sequence is a list of segments; each is the smallest of: a range, a range with holes, a range with a bitmap of
those present, or an array (of 16, 32 or 64-bit integers, the first two counted from a base). A version sequence is a
list of runs, each a version and a segment of which only the number of values means something: after a compaction the
reference leaves the spans of the old fragments in place.

In memory both are runs of rows: of ids that count up, or of one version. A fragment that was appended is one run,
however many rows it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.pb import rowids_pb2
from lance_ops.wire.framing import parse_message

__all__ = [
    "FIRST_VERSION",
    "RowIds",
    "RowVersions",
    "count_row_ids",
    "decode_row_id_runs",
    "decode_row_ids",
    "decode_version_runs",
    "encode_row_id_range",
    "encode_row_ids",
    "encode_uniform_versions",
    "encode_versions",
    "uniform_versions",
]

U64s: TypeAlias = npt.NDArray[np.uint64]

FIRST_VERSION = 1
"""Of rows in a fragment that does not say, as the reference takes it."""

_SEGMENT_BYTES = 24  # what a segment costs before its values, in the cost model that the reference chooses by
_HOLE_BYTES = 4
_SORTED_VALUE_BYTES = 2
_WIDEST_GAP = 8 * _SEGMENT_BYTES  # ids missing between two runs: more cost more in a bitmap than a segment does
_SHORTEST_PIECE = 64  # ids; shorter ones share an array, so that ids in no order are not a segment each


@dataclass(frozen=True, eq=False)
class RowIds:
    """The ids of rows of a fragment: run `i` counts up from `starts[i]`, for the `lengths[i]` rows from `rows[i]` on.

    Rows ascend. Where not all rows are meant, there are gaps between the runs.
    """

    starts: U64s
    rows: U64s
    lengths: U64s

    def at(self, offsets: U64s) -> U64s:
        """Return the ids of the rows at physical offsets, which must be among its rows."""
        runs = np.searchsorted(self.rows, offsets, side="right") - 1
        ids: U64s = self.starts[runs] + (offsets - self.rows[runs])
        return ids

    def without(self, deleted: npt.NDArray[np.uint32]) -> RowIds:
        """Return the runs of what is left when rows are deleted; these must be all the rows of a fragment."""
        if not len(deleted):
            return self
        num_rows = int(self.lengths.sum())
        gone = np.zeros(num_rows, np.bool_)
        gone[deleted[deleted < num_rows]] = True
        cut = np.ones(num_rows, np.bool_)
        np.not_equal(gone[1:], gone[:-1], out=cut[1:])
        cut[self.rows] = True
        cuts = np.flatnonzero(cut)
        live = ~gone[cuts]
        rows = cuts[live].astype(np.uint64)
        return RowIds(self.at(rows), rows, np.diff(cuts, append=num_rows)[live].astype(np.uint64))

    def cut_at(self, offsets: U64s) -> RowIds:
        """Return the same rows in runs that also begin anew at these offsets, where there are rows."""
        if not len(self.rows):
            return self
        runs = np.maximum(np.searchsorted(self.rows, offsets, side="right"), 1) - 1
        inside = (offsets - self.rows[runs]) < self.lengths[runs]  # wraps around before the first row
        rows = np.unique(np.concatenate((self.rows, offsets[inside])))
        ends = (self.rows + self.lengths)[np.searchsorted(self.rows, rows, side="right") - 1]
        return RowIds(self.at(rows), rows, np.minimum(ends, np.append(rows[1:], ends[-1])) - rows)

    def find(self, row_ids: U64s) -> tuple[npt.NDArray[np.int64], U64s]:
        """Return which of `row_ids`, ascending, are here, and at which offsets."""
        first = np.searchsorted(row_ids, self.starts)
        counts = np.searchsorted(row_ids, self.starts + (self.lengths - np.uint64(1)), side="right") - first
        before = np.cumsum(counts) - counts
        found = np.repeat(first - before, counts) + np.arange(counts.sum())
        return found, row_ids[found] + np.repeat(self.rows - self.starts, counts)

    def expand(self) -> tuple[U64s, U64s]:
        """Return every id and its row."""
        num_rows = int(self.lengths.sum())
        if num_rows == len(self.starts):
            return self.starts, self.rows
        counts = self.lengths.astype(np.int64)
        within = np.arange(num_rows, dtype=np.uint64) - np.repeat(np.cumsum(self.lengths) - self.lengths, counts)
        return np.repeat(self.starts, counts) + within, np.repeat(self.rows, counts) + within


@dataclass(frozen=True, eq=False)
class RowVersions:
    """One version a row: those before row `ends[i]`, from the last end on, have `versions[i]`."""

    versions: U64s
    ends: U64s

    def at(self, offsets: U64s) -> U64s:
        """Return the versions of the rows at physical offsets."""
        if len(self.versions) == 1:
            return np.full(len(offsets), self.versions[0])
        found: U64s = self.versions[np.searchsorted(self.ends, offsets, side="right")]
        return found

    def expand(self) -> U64s:
        """Return the version of every row."""
        return np.repeat(self.versions, np.diff(self.ends, prepend=np.uint64(0)).astype(np.int64))


def encode_row_id_range(start: int, count: int) -> bytes:
    """Return the sequence of `count` ids from `start` on."""
    return _sequence_of(_range(start, start + count))


def encode_row_ids(row_ids: U64s) -> bytes:
    """Return the sequence of these ids, in this order: a segment for each part that ascends without a wide gap."""
    pieces = _pieces(row_ids)
    return rowids_pb2.RowIdSequence(segments=[_segment_of(piece) for piece in pieces]).SerializeToString()


def decode_row_ids(data: bytes, num_rows: int, path: str) -> U64s:
    """Return the ids; raise `CorruptFile` unless there are `num_rows` of them."""
    place = "row id sequence"
    segments = parse_message(rowids_pb2.RowIdSequence, data, path, place).segments
    _check_count(sum(_length(segment, path, place) for segment in segments), num_rows, path, place)
    return _concatenate([_values(segment, path, place) for segment in segments])


def decode_row_id_runs(data: bytes, num_rows: int, path: str) -> RowIds:
    """Return the ids as runs, ranges unexpanded; raise `CorruptFile` unless there are `num_rows` of them."""
    place = "row id sequence"
    segments = parse_message(rowids_pb2.RowIdSequence, data, path, place).segments
    counts = [_length(segment, path, place) for segment in segments]
    _check_count(sum(counts), num_rows, path, place)
    starts, lengths = [], []
    for segment, count in zip(segments, counts, strict=True):
        if segment.WhichOneof("segment") == "range":
            starts.append(np.array([segment.range.start][:count], np.uint64))
            lengths.append(np.array([count][:count], np.uint64))
        else:
            ids = _values(segment, path, place)
            breaks = _run_starts(ids)
            starts.append(ids[breaks])
            lengths.append(np.diff(breaks, append=count).astype(np.uint64))
    all_lengths = _concatenate(lengths)
    return RowIds(_concatenate(starts), np.cumsum(all_lengths) - all_lengths, all_lengths)


def count_row_ids(data: bytes, path: str) -> int:
    """Return how many ids a sequence has, without expanding it."""
    place = "row id sequence"
    segments = parse_message(rowids_pb2.RowIdSequence, data, path, place).segments
    return sum(_length(segment, path, place) for segment in segments)


def uniform_versions(version: int, count: int) -> RowVersions:
    """Return one version for all of `count` rows."""
    return RowVersions(np.array([version], np.uint64), np.array([count], np.uint64))


def encode_uniform_versions(version: int, count: int) -> bytes:
    """Return the sequence of `count` rows of one version."""
    return encode_versions(np.full(count, version, np.uint64))


def encode_versions(versions: U64s) -> bytes:
    """Return the sequence of these versions, run by run."""
    starts = np.flatnonzero(np.concatenate(([True], versions[1:] != versions[:-1]))) if len(versions) else np.array([])
    ends = np.append(starts[1:], len(versions))
    sequence = rowids_pb2.RowDatasetVersionSequence()
    for start, end in zip(starts.tolist(), ends.tolist(), strict=False):
        sequence.runs.add(span=_range(start, end), version=int(versions[start]))
    return sequence.SerializeToString()


def decode_version_runs(data: bytes, num_rows: int, path: str) -> RowVersions:
    """Return the versions as runs; raise `CorruptFile` unless they are of `num_rows` rows."""
    place = "row version sequence"
    runs = parse_message(rowids_pb2.RowDatasetVersionSequence, data, path, place).runs
    counts = [_length(run.span, path, place) for run in runs]
    _check_count(sum(counts), num_rows, path, place)
    versions = np.array([run.version for run in runs], np.uint64)
    return RowVersions(versions, np.cumsum(counts, dtype=np.uint64))


def _pieces(row_ids: U64s) -> list[U64s]:
    """Cut ids where they do not ascend or leave a wide gap; a cut between two short parts is not worth a segment."""
    missing = row_ids[1:] - row_ids[:-1] - np.uint64(1)  # wraps around where they do not ascend
    cuts = np.flatnonzero(missing > np.uint64(_WIDEST_GAP)) + 1
    long = np.diff(cuts, prepend=0, append=len(row_ids)) >= _SHORTEST_PIECE
    return np.split(row_ids, cuts[long[1:] | long[:-1]])


def _run_starts(ids: U64s) -> npt.NDArray[np.int64]:
    """Return where a run of ids that count up begins."""
    breaks = np.flatnonzero(ids[1:] - ids[:-1] != 1) + 1
    return np.concatenate((np.zeros(min(len(ids), 1), np.int64), breaks))


def _sequence_of(segment: rowids_pb2.U64Segment) -> bytes:
    return rowids_pb2.RowIdSequence(segments=[segment]).SerializeToString()


def _range(start: int, end: int) -> rowids_pb2.U64Segment:
    return rowids_pb2.U64Segment(range=rowids_pb2.U64Segment.Range(start=start, end=end))


def _segment_of(values: U64s) -> rowids_pb2.U64Segment:
    count = len(values)
    if not count:
        return _range(0, 0)
    if not (values[1:] > values[:-1]).all():
        return rowids_pb2.U64Segment(array=_array_of(values))
    start, end = int(values[0]), int(values[-1]) + 1
    if end > (1 << 64) - 1:
        raise InvalidInput(f"row id {end - 1} is the one that no range can end with")
    span = end - start
    if span == count:
        return _range(start, end)
    holes = span - count
    costs = {
        "holes": _SEGMENT_BYTES + _HOLE_BYTES * holes,
        "bitmap": _SEGMENT_BYTES + -(-span // 8),
        "array": _SEGMENT_BYTES + _SORTED_VALUE_BYTES * count,
    }
    cheapest = min(costs, key=costs.__getitem__)
    if cheapest == "array":
        return rowids_pb2.U64Segment(sorted_array=_array_of(values))
    present = np.zeros(span, np.bool_)
    present[(values - np.uint64(start)).astype(np.int64)] = True
    if cheapest == "bitmap":
        bitmap = np.packbits(present, bitorder="little").tobytes()
        return rowids_pb2.U64Segment(
            range_with_bitmap=rowids_pb2.U64Segment.RangeWithBitmap(start=start, end=end, bitmap=bitmap)
        )
    missing = np.flatnonzero(~present).astype(np.uint64) + np.uint64(start)
    return rowids_pb2.U64Segment(
        range_with_holes=rowids_pb2.U64Segment.RangeWithHoles(start=start, end=end, holes=_array_of(missing))
    )


def _array_of(values: U64s) -> rowids_pb2.EncodedU64Array:
    base = values.min()
    width = int(values.max() - base)
    if width < 1 << 16:
        offsets = (values - base).astype("<u2").tobytes()
        return rowids_pb2.EncodedU64Array(
            u16_array=rowids_pb2.EncodedU64Array.U16Array(base=int(base), offsets=offsets)
        )
    if width < 1 << 32:
        offsets = (values - base).astype("<u4").tobytes()
        return rowids_pb2.EncodedU64Array(
            u32_array=rowids_pb2.EncodedU64Array.U32Array(base=int(base), offsets=offsets)
        )
    return rowids_pb2.EncodedU64Array(
        u64_array=rowids_pb2.EncodedU64Array.U64Array(values=values.astype("<u8").tobytes())
    )


def _length(segment: rowids_pb2.U64Segment, path: str, place: str) -> int:
    """Return how many values a segment has; cheap, and bounded by the bytes except for ranges."""
    match segment.WhichOneof("segment"):
        case "range":
            return _span(segment.range, path, place)
        case "range_with_holes":
            part = segment.range_with_holes
            return _span(part, path, place) - len(_holes(part, path, place))
        case "range_with_bitmap":
            return int(np.count_nonzero(_bits(segment.range_with_bitmap, path, place)))
        case "sorted_array":
            return len(_array(segment.sorted_array, path, place))
        case "array":
            return len(_array(segment.array, path, place))
        case _:
            raise CorruptFile(path, place, "a segment of no known kind")


def _values(segment: rowids_pb2.U64Segment, path: str, place: str) -> U64s:
    match segment.WhichOneof("segment"):
        case "range":
            return _arange(segment.range.start, segment.range.end)
        case "range_with_holes":
            part = segment.range_with_holes
            present = np.ones(_span(part, path, place), np.bool_)
            present[(_holes(part, path, place) - np.uint64(part.start)).astype(np.int64)] = False
            return np.flatnonzero(present).astype(np.uint64) + np.uint64(part.start)
        case "range_with_bitmap":
            bits = np.flatnonzero(_bits(segment.range_with_bitmap, path, place))
            return bits.astype(np.uint64) + np.uint64(segment.range_with_bitmap.start)
        case "sorted_array":
            return _array(segment.sorted_array, path, place)
        case _:
            return _array(segment.array, path, place)


def _span(
    part: rowids_pb2.U64Segment.Range | rowids_pb2.U64Segment.RangeWithHoles | rowids_pb2.U64Segment.RangeWithBitmap,
    path: str,
    place: str,
) -> int:
    if part.end < part.start:
        raise CorruptFile(path, place, f"a range from {part.start} to {part.end}")
    return part.end - part.start


def _holes(part: rowids_pb2.U64Segment.RangeWithHoles, path: str, place: str) -> U64s:
    holes = _array(part.holes, path, place)
    if len(holes) and not (part.start <= int(holes[0]) and int(holes[-1]) < part.end):
        raise CorruptFile(path, place, f"holes outside of the range from {part.start} to {part.end}")
    if not (holes[1:] > holes[:-1]).all():
        raise CorruptFile(path, place, "holes out of order")
    return holes


def _bits(part: rowids_pb2.U64Segment.RangeWithBitmap, path: str, place: str) -> npt.NDArray[np.uint8]:
    span = _span(part, path, place)
    if len(part.bitmap) * 8 < span:
        raise CorruptFile(path, place, f"a bitmap of {len(part.bitmap)} bytes for a range of {span}")
    return np.unpackbits(np.frombuffer(part.bitmap, np.uint8), count=span, bitorder="little")


def _array(array: rowids_pb2.EncodedU64Array, path: str, place: str) -> U64s:
    which = array.WhichOneof("array")
    if which is None:
        return np.empty(0, np.uint64)
    base, raw, width = 0, b"", 8
    if which == "u16_array":
        base, raw, width = array.u16_array.base, array.u16_array.offsets, 2
    elif which == "u32_array":
        base, raw, width = array.u32_array.base, array.u32_array.offsets, 4
    else:
        raw = array.u64_array.values
    if len(raw) % width:
        raise CorruptFile(path, place, f"{len(raw)} bytes are no array of {8 * width}-bit integers")
    values = np.frombuffer(raw, f"<u{width}").astype(np.uint64)
    if len(values) and base + int(values.max()) >= 1 << 64:
        raise CorruptFile(path, place, "values beyond 64 bits")
    return values + np.uint64(base)


def _arange(start: int, end: int) -> U64s:
    return np.arange(end - start, dtype=np.uint64) + np.uint64(start)


def _concatenate(parts: list[U64s]) -> U64s:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _check_count(found: int, expected: int, path: str, place: str) -> None:
    if found != expected:
        raise CorruptFile(path, place, f"{found} values for {expected} rows")

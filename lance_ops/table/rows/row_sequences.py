"""Encode and decode the sequences of a fragment: stable row ids, and the versions that created or last updated rows.

A sequence has one u64 for each physical row. A row id sequence is a list of segments. Each segment is the smallest of:
a range, a range with holes, a range with a bitmap of the ids present, or an array of 16, 32 or 64-bit integers; the
first two widths are offsets from a base. A version sequence is a list of runs, each a version and a segment. Only the
number of the segment's values counts: after a compaction the reference keeps the spans of the old fragments.
"""

from __future__ import annotations

import numpy as np

from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.core.ndarrays import BoolArray, Uint64Array
from lance_ops.pb import rowids_pb2
from lance_ops.table.rows.row_id_runs import RowIds, RowVersions
from lance_ops.wire import parse_message

__all__ = [
    "FIRST_VERSION",
    "count_row_ids",
    "decode_row_ids",
    "decode_versions",
    "encode_row_id_range",
    "encode_row_ids",
    "encode_uniform_versions",
    "encode_versions",
]


FIRST_VERSION = 1
"""The version of rows in a fragment that states none, as in the reference."""

_SEGMENT_BYTES = 24  # the cost of a segment without its values, in the reference's cost model
_HOLE_BYTES = 4
_SORTED_VALUE_BYTES = 2
_WIDEST_GAP = 8 * _SEGMENT_BYTES  # missing ids between two runs; a bitmap over a wider gap costs more than a segment
_SHORTEST_PIECE = 64  # ids; shorter pieces share an array, so that unordered ids do not get a segment each


def encode_row_id_range(start: int, count: int) -> bytes:
    """Return the sequence of `count` ids from `start` on."""
    return _sequence_of(_range(start, start + count))


def encode_row_ids(row_ids: RowIds) -> bytes:
    """Return the sequence of these ids, in order, with a segment for each part that ascends without a wide gap."""
    segments = [_segment_of(piece) for piece in _pieces(row_ids)]
    return rowids_pb2.RowIdSequence(segments=segments).SerializeToString()


def decode_row_ids(data: bytes, num_rows: int, path: str) -> RowIds:
    """Return the ids as runs; raise `CorruptFile` unless there are `num_rows` of them."""
    place = "row id sequence"
    segments = parse_message(rowids_pb2.RowIdSequence, data, path, place).segments
    parts = [_ids_of(segment, path, place) for segment in segments]
    _check_count(sum(part.num_rows for part in parts), num_rows, path, place)
    return parts[0] if len(parts) == 1 else RowIds.joined(parts)


def count_row_ids(data: bytes, path: str) -> int:
    """Return how many ids a sequence has, without expanding it."""
    place = "row id sequence"
    segments = parse_message(rowids_pb2.RowIdSequence, data, path, place).segments
    return sum(_length(segment, path, place) for segment in segments)


def encode_uniform_versions(version: int, count: int) -> bytes:
    """Return the sequence of `count` rows of one version."""
    return encode_versions(RowVersions.uniform(version, count))


def encode_versions(versions: RowVersions) -> bytes:
    """Return the sequence of these versions, run by run."""
    lengths = versions.lengths
    runs = RowVersions(versions.versions[lengths > 0], versions.ends[lengths > 0])
    last = np.append(runs.versions[1:] != runs.versions[:-1], True)[: len(runs.ends)]
    sequence, start = rowids_pb2.RowDatasetVersionSequence(), 0
    for end, version in zip(runs.ends[last].tolist(), runs.versions[last].tolist(), strict=True):
        sequence.runs.add(span=_range(start, end), version=version)
        start = end
    return sequence.SerializeToString()


def decode_versions(data: bytes, num_rows: int, path: str) -> RowVersions:
    """Return the versions as runs; raise `CorruptFile` unless they are of `num_rows` rows."""
    place = "row version sequence"
    runs = parse_message(rowids_pb2.RowDatasetVersionSequence, data, path, place).runs
    counts = [_length(run.span, path, place) for run in runs]
    _check_count(sum(counts), num_rows, path, place)
    versions = np.array([run.version for run in runs], np.uint64)
    return RowVersions(versions, np.cumsum(counts, dtype=np.uint64))


def _pieces(row_ids: RowIds) -> list[RowIds]:
    """Cut ids where they do not ascend and at wide gaps, but not between two short parts."""
    ends = row_ids.starts + row_ids.lengths
    missing = row_ids.starts[1:] - ends[:-1]  # wraps around to a large number where they do not ascend
    cuts = np.flatnonzero(missing > np.uint64(_WIDEST_GAP)) + 1
    before = np.append(np.uint64(0), np.cumsum(row_ids.lengths))
    long = np.diff(before[np.concatenate(([0], cuts, [len(ends)]))]) >= _SHORTEST_PIECE
    cuts = cuts[long[1:] | long[:-1]]
    columns = (np.split(column, cuts) for column in (row_ids.starts, row_ids.rows, row_ids.lengths))
    return [RowIds(*piece) for piece in zip(*columns, strict=True)]


def _sequence_of(segment: rowids_pb2.U64Segment) -> bytes:
    return rowids_pb2.RowIdSequence(segments=[segment]).SerializeToString()


def _range(start: int, end: int) -> rowids_pb2.U64Segment:
    return rowids_pb2.U64Segment(range=rowids_pb2.U64Segment.Range(start=start, end=end))


def _segment_of(row_ids: RowIds) -> rowids_pb2.U64Segment:
    count = row_ids.num_rows
    if not count:
        return _range(0, 0)
    start, end = int(row_ids.starts[0]), int(row_ids.starts[-1]) + int(row_ids.lengths[-1])
    if not (row_ids.starts[1:] > (row_ids.starts + (row_ids.lengths - np.uint64(1)))[:-1]).all():
        return rowids_pb2.U64Segment(array=_array_of(row_ids.expand()[0]))
    if end > (1 << 64) - 1:
        raise InvalidInput(f"row id {end - 1} cannot be the last of a range, whose end is exclusive")
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
        return rowids_pb2.U64Segment(sorted_array=_array_of(row_ids.expand()[0]))
    present = _presence(row_ids, start, span)
    if cheapest == "bitmap":
        bitmap = np.packbits(present, bitorder="little").tobytes()
        return rowids_pb2.U64Segment(
            range_with_bitmap=rowids_pb2.U64Segment.RangeWithBitmap(start=start, end=end, bitmap=bitmap)
        )
    missing = np.flatnonzero(~present).astype(np.uint64) + np.uint64(start)
    return rowids_pb2.U64Segment(
        range_with_holes=rowids_pb2.U64Segment.RangeWithHoles(start=start, end=end, holes=_array_of(missing))
    )


def _presence(row_ids: RowIds, start: int, span: int) -> BoolArray:
    """Return for each id from `start` on whether it is among the ids, which ascend."""
    steps = np.zeros(span + 1, np.int8)
    begins = (row_ids.starts - np.uint64(start)).astype(np.int64)
    steps[begins] += 1
    steps[begins + row_ids.lengths.astype(np.int64)] -= 1
    return np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_)


def _array_of(values: Uint64Array) -> rowids_pb2.EncodedU64Array:
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
    """Return how many values a segment has, without expanding ranges."""
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


def _ids_of(segment: rowids_pb2.U64Segment, path: str, place: str) -> RowIds:
    match segment.WhichOneof("segment"):
        case "range":
            return RowIds.counting_from(segment.range.start, _span(segment.range, path, place))
        case "range_with_holes":
            part = segment.range_with_holes
            _span(part, path, place)
            holes = _holes(part, path, place)
            return RowIds.between(
                np.append(np.uint64(part.start), holes + np.uint64(1)), np.append(holes, np.uint64(part.end))
            )
        case "range_with_bitmap":
            bits = _bits(segment.range_with_bitmap, path, place)
            edges = np.zeros(len(bits) + 1, np.bool_)
            edges[:-1] = bits
            edges[1:] ^= bits
            ids = np.flatnonzero(edges).astype(np.uint64) + np.uint64(segment.range_with_bitmap.start)
            return RowIds.between(ids[::2], ids[1::2])
        case "sorted_array":
            return RowIds.of(_array(segment.sorted_array, path, place))
        case "array":
            return RowIds.of(_array(segment.array, path, place))
        case _:
            raise CorruptFile(path, place, "a segment of no known kind")


def _span(
    part: rowids_pb2.U64Segment.Range | rowids_pb2.U64Segment.RangeWithHoles | rowids_pb2.U64Segment.RangeWithBitmap,
    path: str,
    place: str,
) -> int:
    if part.end < part.start:
        raise CorruptFile(path, place, f"a range from {part.start} to {part.end}")
    return part.end - part.start


def _holes(part: rowids_pb2.U64Segment.RangeWithHoles, path: str, place: str) -> Uint64Array:
    holes = _array(part.holes, path, place)
    if len(holes) and not (part.start <= int(holes[0]) and int(holes[-1]) < part.end):
        raise CorruptFile(path, place, f"holes outside of the range from {part.start} to {part.end}")
    if not (holes[1:] > holes[:-1]).all():
        raise CorruptFile(path, place, "holes out of order")
    return holes


def _bits(part: rowids_pb2.U64Segment.RangeWithBitmap, path: str, place: str) -> BoolArray:
    span = _span(part, path, place)
    if len(part.bitmap) * 8 < span:
        raise CorruptFile(path, place, f"a bitmap of {len(part.bitmap)} bytes for a range of {span}")
    return np.unpackbits(np.frombuffer(part.bitmap, np.uint8), count=span, bitorder="little").view(np.bool_)


def _array(array: rowids_pb2.EncodedU64Array, path: str, place: str) -> Uint64Array:
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
        raise CorruptFile(path, place, f"{len(raw)} bytes are not an array of {8 * width}-bit integers")
    values = np.frombuffer(raw, f"<u{width}").astype(np.uint64)
    if len(values) and base + int(values.max()) >= 1 << 64:
        raise CorruptFile(path, place, "values beyond 64 bits")
    return values + np.uint64(base)


def _check_count(found: int, expected: int, path: str, place: str) -> None:
    if found != expected:
        raise CorruptFile(path, place, f"{found} values for {expected} rows")

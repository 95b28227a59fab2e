"""Row id and version sequences: each kind of segment, the reference's bytes, hostile bytes."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from lance_ops.core.errors import CorruptFile
from lance_ops.pb import rowids_pb2
from lance_ops.table.rows.row_id_runs import RowIds, RowVersions
from lance_ops.table.rows.row_sequences import (
    count_row_ids,
    decode_row_ids,
    decode_versions,
    encode_row_id_range,
    encode_row_ids,
    encode_uniform_versions,
    encode_versions,
)

IDS = st.one_of(
    st.lists(st.integers(0, 2**64 - 3), max_size=30, unique=True),
    st.lists(st.integers(0, 300), max_size=200, unique=True).map(sorted),
    st.lists(st.integers(2**40, 2**40 + 70_000), max_size=50, unique=True).map(sorted),
    st.integers(0, 2**60).map(lambda start: list(range(start, start + 40))),
)


def u64s(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64)


def segment_of(data: bytes) -> rowids_pb2.U64Segment:
    """Return the only segment of a sequence."""
    (segment,) = rowids_pb2.RowIdSequence.FromString(data).segments
    return segment


@given(IDS)
def test_what_is_encoded_is_decoded(ids: list[int]) -> None:
    data = encode_row_ids(RowIds.of(u64s(ids)))

    assert decode_row_ids(data, len(ids), "s").expand()[0].tolist() == ids
    assert count_row_ids(data, "s") == len(ids)
    runs = decode_row_ids(data, len(ids), "s")
    assert runs.expand()[0].tolist() == ids
    assert runs.at(u64s(list(range(len(ids))))).tolist() == ids


def test_a_fragment_of_a_billion_rows_is_one_run() -> None:
    runs = decode_row_ids(encode_row_id_range(7, 10**9), 10**9, "s")

    assert len(runs.starts) == 1
    assert runs.at(u64s([0, 10**9 - 1])).tolist() == [7, 10**9 + 6]


def test_ids_with_wide_gaps_get_a_segment_each() -> None:
    """As after a compaction: kept rows, rows that an update had moved to the end, rows from far away."""
    kept, moved, far = list(range(1000)), list(range(300, 600, 2)), list(range(10**9, 10**9 + 200))
    sequence = rowids_pb2.RowIdSequence.FromString(encode_row_ids(RowIds.of(u64s(kept + moved + far))))

    kinds = [segment.WhichOneof("segment") for segment in sequence.segments]
    assert kinds == ["range", "range_with_bitmap", "range"]
    assert decode_row_ids(sequence.SerializeToString(), 1350, "s").expand()[0].tolist() == kept + moved + far


def test_unordered_ids_share_an_array() -> None:
    shuffled = np.random.default_rng(5).permutation(5000).astype(np.uint64)

    assert segment_of(encode_row_ids(RowIds.of(shuffled))).WhichOneof("segment") == "array"


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([], "range"),
        (list(range(5, 50)), "range"),
        ([i for i in range(1000) if i not in (3, 700)], "range_with_holes"),
        (list(range(0, 1000, 3)), "range_with_bitmap"),
        ([1, 10_000, 90_000], "sorted_array"),
        ([3, 1, 2], "array"),
        ([1, 1, 2], "array"),
    ],
)
def test_the_smallest_segment_is_chosen(ids: list[int], kind: str) -> None:
    assert segment_of(encode_row_ids(RowIds.of(u64s(ids)))).WhichOneof("segment") == kind


def test_bitmaps_count_from_the_least_significant_bit() -> None:
    segment = rowids_pb2.U64Segment(
        range_with_bitmap=rowids_pb2.U64Segment.RangeWithBitmap(start=0, end=10, bitmap=bytes.fromhex("5703"))
    )
    data = rowids_pb2.RowIdSequence(segments=[segment]).SerializeToString()

    assert decode_row_ids(data, 7, "s").expand()[0].tolist() == [0, 1, 2, 4, 6, 8, 9]


@pytest.mark.parametrize(("spread", "kind"), [(9, "u16_array"), (70_000, "u32_array"), (2**33, "u64_array")])
def test_arrays_are_as_narrow_as_their_spread_allows(spread: int, kind: str) -> None:
    segment = segment_of(encode_row_ids(RowIds.of(u64s([2**50 + spread, 2**50, 2**50 + 1]))))

    assert segment.array.WhichOneof("array") == kind


def test_segments_follow_each_other() -> None:
    sequence = rowids_pb2.RowIdSequence.FromString(encode_row_id_range(10, 3))
    sequence.MergeFromString(encode_row_ids(RowIds.of(u64s([7, 5]))))

    assert decode_row_ids(sequence.SerializeToString(), 5, "s").expand()[0].tolist() == [10, 11, 12, 7, 5]


def test_another_number_of_ids_than_rows_is_corrupt() -> None:
    with pytest.raises(CorruptFile, match="s: row id sequence: 3 values for 4 rows"):
        decode_row_ids(encode_row_id_range(0, 3), 4, "s")


def test_a_range_beyond_memory_is_refused_before_it_is_expanded() -> None:
    with pytest.raises(CorruptFile, match="values for 10 rows"):
        decode_row_ids(encode_row_id_range(0, 2**62), 10, "s")


def test_a_huge_range_with_holes_is_decoded_as_runs() -> None:
    holes = rowids_pb2.EncodedU64Array(
        u64_array=rowids_pb2.EncodedU64Array.U64Array(values=u64s([5, 9, 10, 2**61]).tobytes())
    )
    part = rowids_pb2.U64Segment.RangeWithHoles(start=5, end=2**62, holes=holes)
    data = rowids_pb2.RowIdSequence(segments=[rowids_pb2.U64Segment(range_with_holes=part)]).SerializeToString()
    runs = decode_row_ids(data, 2**62 - 9, "s")

    assert runs.starts.tolist() == [6, 11, 2**61 + 1]
    assert runs.rows.tolist() == [0, 3, 2**61 - 8]
    with pytest.raises(CorruptFile, match="values for 10 rows"):
        decode_row_ids(data, 10, "s")


@given(IDS, st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=3))
def test_flipped_bytes_are_read_or_corrupt(ids: list[int], flips: list[tuple[int, int]]) -> None:
    data = bytearray(encode_row_ids(RowIds.of(u64s(ids))))
    for at, mask in flips:
        data[at % len(data)] ^= mask
    with suppress(CorruptFile):
        assert decode_row_ids(bytes(data), len(ids), "s").num_rows == len(ids)


@given(st.lists(st.integers(1, 5), max_size=60))
def test_encoded_versions_are_decoded(versions: list[int]) -> None:
    data = encode_versions(RowVersions.of(u64s(versions)))

    assert decode_versions(data, len(versions), "s").expand().tolist() == versions
    rows = u64s(list(range(len(versions))))
    assert decode_versions(data, len(versions), "s").at(rows).tolist() == versions
    runs = rowids_pb2.RowDatasetVersionSequence.FromString(data).runs
    assert all(before.version != after.version for before, after in pairwise(runs))


def test_one_version_is_one_run() -> None:
    data = encode_uniform_versions(9, 4)

    assert decode_versions(data, 4, "s").expand().tolist() == [9] * 4
    assert len(rowids_pb2.RowDatasetVersionSequence.FromString(data).runs) == 1


def test_only_the_count_of_a_version_runs_span_is_used() -> None:
    sequence = rowids_pb2.RowDatasetVersionSequence()
    for version in (3, 8):  # both spans are of old fragments, as the reference leaves them after a compaction
        bitmap = rowids_pb2.U64Segment.RangeWithBitmap(start=0, end=10, bitmap=bytes.fromhex("5703"))
        sequence.runs.add(span=rowids_pb2.U64Segment(range_with_bitmap=bitmap), version=version)

    data = sequence.SerializeToString()
    assert decode_versions(data, 14, "s").expand().tolist() == [3] * 7 + [8] * 7
    assert decode_versions(data, 14, "s").at(u64s([6, 7])).tolist() == [3, 8]


ROWS = st.integers(0, 210)


@given(IDS, st.sets(ROWS, max_size=30).map(sorted), st.lists(ROWS, max_size=8).map(sorted))
def test_runs_without_deleted_rows_and_split_again_are_the_remaining_rows(
    ids: list[int], deleted: list[int], cuts: list[int]
) -> None:
    runs = decode_row_ids(encode_row_ids(RowIds.of(u64s(ids))), len(ids), "s")

    left = runs.without(np.array(deleted, np.uint32)).cut_at(u64s(cuts))

    expected = [(row_id, row) for row, row_id in enumerate(ids) if row not in deleted]
    found_ids, rows = left.expand()
    assert list(zip(found_ids.tolist(), rows.tolist(), strict=True)) == expected
    assert {row for _, row in expected}.intersection(cuts) <= set(left.rows.tolist())


@given(IDS, st.sets(st.integers(0, 300)))
def test_rows_are_found_by_id(ids: list[int], others: set[int]) -> None:
    asked = sorted({*ids[::2], *others})
    runs = decode_row_ids(encode_row_ids(RowIds.of(u64s(ids))), len(ids), "s")

    which, rows = runs.find(u64s(asked))

    rows_of = {row_id: row for row, row_id in enumerate(ids)}
    expected = {row_id: rows_of[row_id] for row_id in asked if row_id in rows_of}
    assert dict(zip(u64s(asked)[which].tolist(), rows.tolist(), strict=True)) == expected

"""Heads of many fragments, read by numpy or by the protobuf library."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from lance_ops.core.errors import CorruptFile
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.pb import table_pb2
from lance_ops.table import Fragment, FragmentList
from lance_ops.table.fragments import fragment_heads
from lance_ops.table.fragments.fragment_heads import heads_of
from lance_ops.wire import join_messages, message_columns, read_message_columns
from tests.table.samples import FRAGMENTS, fragment

MANY = fragment_heads._MANY + 1


def encoded(one: Fragment) -> bytes:
    return one.to_pb().SerializeToString(deterministic=True)


@given(st.lists(FRAGMENTS, min_size=1, max_size=6))
def test_heads_are_the_same_whoever_reads_them(content: list[Fragment]) -> None:
    messages = [encoded(one) for one in content]
    expected = fragment_heads._parse_each(messages, "m")
    numbers = [*expected.ids, *expected.physical_rows, *expected.deleted_rows.values()]
    is_read_together = max(numbers) < 1 << 63
    assert fragment_heads._read_together(messages) == (expected if is_read_together else None)


@given(st.binary(max_size=40), st.integers(0, 60), FRAGMENTS)
def test_bytes_that_are_no_fragment_are_left_to_the_protobuf_library(data: bytes, cut: int, one: Fragment) -> None:
    for message in (data, encoded(one)[:cut], encoded(one)[:cut] + data):
        found = fragment_heads._read_together([encoded(one), message])
        if found is not None:
            assert found == fragment_heads._parse_each([encoded(one), message], "m")


@pytest.mark.parametrize("number", [(1 << 62) - 1, (1 << 63) - 1, (1 << 63), (1 << 64) - 1])
def test_numbers_of_any_size_are_read(number: int) -> None:
    message = table_pb2.DataFragment(id=number, physical_rows=number, deletion_file={"num_deleted_rows": number})
    heads = heads_of([message.SerializeToString()] * MANY, "m")
    assert heads == ([number] * MANY, [number] * MANY, dict.fromkeys(range(MANY), number))


def test_of_a_field_that_a_fragment_states_twice_the_last_number_holds() -> None:
    twice = table_pb2.DataFragment(id=3, physical_rows=5, deletion_file={"num_deleted_rows": 2})
    message = twice.SerializeToString() + b"\x20\x07"
    assert heads_of([message] * MANY, "m") == ([3] * MANY, [7] * MANY, dict.fromkeys(range(MANY), 2))


def test_many_fragments_are_counted_without_a_message_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_heads, "parse_message", None)
    read = FragmentList.from_messages([encoded(fragment(at, deleted=at % 3)) for at in range(MANY)], "m")
    rows = np.full(MANY, fragment(0).physical_rows) - np.arange(MANY) % 3
    assert read.ids == [*range(MANY)]
    assert read.live_row_counts().tolist() == rows.tolist()
    assert read.num_rows == rows.sum()


def test_a_message_that_is_no_fragment_is_an_error_among_many() -> None:
    read = FragmentList.from_messages([*[encoded(fragment(at)) for at in range(MANY)], b"\x22\x05"], "m")
    with pytest.raises(CorruptFile, match="m: fragments"):
        _ = read.num_rows


def test_a_message_of_very_many_fields_is_left_to_the_protobuf_library(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    read_varints = message_columns._read_varints

    def noting(data: Uint8Array, at: Int64Array, limits: Int64Array) -> message_columns._Varints | None:
        steps.append(len(at))
        return read_varints(data, at, limits)

    monkeypatch.setattr(message_columns, "_read_varints", noting)
    usual = [encoded(fragment(at)) for at in range(MANY)]
    most = usual[0] + b"\x60\x00" * (message_columns._MOST_ROUNDS - len(list_fields(usual[0])))
    for long, is_left in ((most, False), (most + b"\x60\x00", True), (usual[0] + b"\x60\x00" * 5000, True)):
        steps.clear()
        messages = [*usual, long]
        assert (fragment_heads._read_together(messages) is None) == is_left
        assert heads_of(messages, "m") == fragment_heads._parse_each(messages, "m")
        assert 0 < len(steps) <= 4 * message_columns._MOST_ROUNDS + 4


def list_fields(message: bytes) -> list[int]:
    """Return the numbers of a fragment's fields, in order; none of them repeats."""
    read = table_pb2.DataFragment.FromString(message)
    return [field.number for field, _ in read.ListFields()]


@pytest.mark.parametrize(
    "tag",
    [
        b"\xf8\xff\xff\xff\xff\x7f",  # a number above 2^29 - 1
        b"\xf8\xff\xff\xff\x1f",  # the same in five bytes
        b"\x88\x80\x80\x80\x80\x80\x80\x80\x80\x02",  # the id's tag and 2^64
        b"\x88\x80\x80\x80\x80\x00",  # the id's tag in six bytes
    ],
)
def test_a_tag_of_more_than_32_bits_is_left_to_the_protobuf_library(tag: bytes) -> None:
    assert fragment_heads._read_together([encoded(fragment(1)), tag + b"\x05"]) is None


def test_no_messages_have_no_fields() -> None:
    data, starts, stops = join_messages([])
    assert (len(data), len(starts), len(stops)) == (0, 0, 0)
    columns = read_message_columns(data, starts, stops, {1: 0})
    assert columns is not None
    assert columns[1].numbers.tolist() == []

"""Heads of many fragments, read by numpy or by the protobuf library."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from lance_ops.core.errors import CorruptFile
from lance_ops.pb import table_pb2
from lance_ops.table import Fragment, FragmentList
from lance_ops.table.fragments import fragment_heads
from lance_ops.table.fragments.fragment_heads import heads_of
from tests.table.samples import FRAGMENTS, fragment

MANY = fragment_heads._MANY + 1


def encoded(one: Fragment) -> bytes:
    return one.to_pb().SerializeToString(deterministic=True)


@given(st.lists(FRAGMENTS, min_size=1, max_size=6))
def test_heads_are_the_same_whoever_reads_them(content: list[Fragment]) -> None:
    messages = [encoded(one) for one in content]
    found = fragment_heads._read_together(messages)
    assert found in (None, fragment_heads._parse_each(messages, "m"))


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


def test_a_fragment_that_states_a_field_twice_counts_once() -> None:
    twice = table_pb2.DataFragment(id=3, physical_rows=5, deletion_file={"num_deleted_rows": 2})
    message = twice.SerializeToString() + b"\x20\x07"  # the last number of rows holds
    assert heads_of([message] * MANY, "m") == ([3] * MANY, [7] * MANY, dict.fromkeys(range(MANY), 2))


def test_many_fragments_are_counted_without_a_message_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragment_heads, "parse_message", None)
    read = FragmentList.from_messages([encoded(fragment(at, deleted=at % 3)) for at in range(MANY)], "m")
    rows = np.full(MANY, fragment(0).physical_rows) - np.arange(MANY) % 3
    assert read.ids == [*range(MANY)]
    assert read.live_row_counts().tolist() == rows.tolist()
    assert read.num_rows == rows.sum()


def test_a_message_that_is_no_fragment_is_an_error_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    read = FragmentList.from_messages([*[encoded(fragment(at)) for at in range(MANY)], b"\x22\x05"], "m")
    with pytest.raises(CorruptFile, match="m: fragments"):
        _ = read.num_rows

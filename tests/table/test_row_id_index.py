"""The row-id index against a dictionary: every shape of runs, deleted and superseded rows, what it must refuse."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from pyroaring import BitMap

from lance_ops.core.addresses import TOMBSTONE_ROW, row_addr
from lance_ops.core.errors import CorruptFile
from lance_ops.core.ndarrays import Int64Array, Uint64Array
from lance_ops.table.rows.row_id_index import RowIdIndex, RowIdRuns, RowIdTable, build_row_id_index
from lance_ops.table.rows.row_id_runs import RowIds

FragmentList = list[tuple[int, list[int], list[int]]]
"""(fragment id, row ids, deleted offsets)"""

_MAX_FRAGMENT_ID = 2**32 - 1


def u64s(values: list[int]) -> Uint64Array:
    return np.array(values, np.uint64)


def index_of(fragments: FragmentList) -> RowIdIndex:
    return build_row_id_index(
        ((number, RowIds.of(u64s(ids)), BitMap(deleted)) for number, ids, deleted in fragments),
        "m",
    )


@st.composite
def tables(draw: st.DrawFn) -> FragmentList:
    """Draw fragments whose live rows have different ids; deleted rows may repeat any."""
    base = draw(st.sampled_from([0, 5, 2**40, 2**64 - 400]))
    span = draw(st.sampled_from([40, 300]))
    pool = draw(st.permutations(range(base, base + span)) if draw(st.booleans()) else st.just(range(base, base + span)))
    ids = list(pool)[: draw(st.integers(0, span))]
    fragments: FragmentList = []
    number = 0
    while ids:
        count = draw(st.integers(1, len(ids)))
        deleted = draw(st.lists(st.integers(0, count - 1), unique=True, max_size=count))
        fragments.append((number, ids[:count], sorted(deleted)))
        ids = ids[count:] + [ids[offset] for offset in deleted if draw(st.booleans())]  # updated: it stands again
        number += draw(st.integers(1, _MAX_FRAGMENT_ID // 6))
        if len(fragments) == 6:
            break
    return fragments


@given(tables())
def test_every_live_row_is_found_and_no_other(fragments: FragmentList) -> None:
    expected = {
        row_id: row_addr(number, offset)
        for number, ids, deleted in fragments
        for offset, row_id in enumerate(ids)
        if offset not in deleted
    }
    asked = sorted({row_id + by for _, ids, _ in fragments for row_id in ids for by in (-1, 0, 1) if row_id + by >= 0})

    found = index_of(fragments).find(u64s(asked))

    assert found.tolist() == [expected.get(row_id, TOMBSTONE_ROW) for row_id in asked]


def test_an_empty_table_has_no_row() -> None:
    assert index_of([]).find(u64s([0, 7])).tolist() == [TOMBSTONE_ROW, TOMBSTONE_ROW]


def test_an_appended_table_has_one_run_per_fragment() -> None:
    index = index_of([(number, list(range(number * 5000, number * 5000 + 5000)), [17]) for number in range(20)])

    assert isinstance(index, RowIdRuns)
    assert len(index.starts) == 40


@pytest.mark.parametrize(
    "row_ids",
    [np.random.default_rng(1).permutation(30_000), np.arange(0, 60_000, 2)],
    ids=["in no order", "every other one"],
)
def test_rows_without_runs_take_one_word_per_id(row_ids: Int64Array) -> None:
    index = index_of([(3, row_ids.tolist(), [])])

    assert isinstance(index, RowIdTable)
    assert index.size_bytes <= 8 * (int(row_ids.max()) + 1)
    assert index.find(row_ids.astype(np.uint64)).tolist() == [row_addr(3, offset) for offset in range(30_000)]


def test_many_unordered_ids_are_found_in_the_order_asked() -> None:
    starts = np.random.default_rng(2).permutation(70_000) * 1000  # as many runs, too far apart for a table
    index = index_of([(1, starts.tolist(), [])])
    asked = np.random.default_rng(3).permutation(70_000)

    assert isinstance(index, RowIdRuns)
    assert (index.find(starts[asked].astype(np.uint64)) == asked.astype(np.uint64) + np.uint64(1 << 32)).all()


@pytest.mark.parametrize(
    "fragments",
    [
        [(0, list(range(100)), []), (1, list(range(99, 200)), [])],
        [(0, list(range(0, 100, 2)), []), (1, [98], [])],
        [(0, [5, 7, 5], [])],
    ],
    ids=["runs", "table", "in one fragment"],
)
def test_two_live_rows_of_one_id_are_corrupt(fragments: FragmentList) -> None:
    with pytest.raises(CorruptFile, match="m: row id sequence: two live rows have the id (99|98|5)"):
        index_of(fragments)

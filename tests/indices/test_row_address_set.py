from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_ops.core.errors import InvalidInput
from lance_ops.indices import RowAddressSet

ADDRESSES = st.lists(
    st.one_of(
        st.builds(lambda fragment, offset: fragment << 32 | offset, st.integers(0, 3), st.integers(0, 40)),
        st.integers(0, 2**64 - 1),
    ),
    max_size=60,
)


def of(*addresses: int, exact: bool = True) -> RowAddressSet:
    return RowAddressSet.from_addresses(np.array(addresses, dtype=np.uint64), exact=exact)


@given(ADDRESSES)
def test_addresses_come_back_sorted_and_once(addresses: list[int]) -> None:
    found = of(*addresses)
    assert found.addresses().tolist() == sorted(set(addresses))
    assert len(found) == len(set(addresses))
    assert all(address in found for address in addresses)
    assert found.fragment_ids == sorted({address >> 32 for address in addresses})


@given(ADDRESSES, ADDRESSES)
def test_set_operations_equal_those_of_python_sets(left: list[int], right: list[int]) -> None:
    ours, theirs = of(*left), of(*right)
    assert ours | theirs == of(*(set(left) | set(right)))
    assert ours & theirs == of(*(set(left) & set(right)))
    assert ours - theirs == of(*(set(left) - set(right)))
    assert RowAddressSet.union([ours, theirs, ours]) == ours | theirs


def test_an_empty_set_is_false_and_has_no_fragments() -> None:
    assert not RowAddressSet()
    assert RowAddressSet() == of()
    assert of().addresses().dtype == np.uint64
    assert of().offsets(3) == BitMap()


def test_offsets_of_a_fragment_are_a_bitmap() -> None:
    found = of(5, 1, 2 << 32 | 7)
    assert found.offsets(0) == BitMap([1, 5])
    assert found.offsets(2) == BitMap([7])
    assert [(fragment_id, list(offsets)) for fragment_id, offsets in found] == [(0, [1, 5]), (2, [7])]


def test_restricting_keeps_rows_of_the_named_fragments() -> None:
    assert of(1, 1 << 32, 2 << 32).restrict({0, 2, 9}) == of(1, 2 << 32)


def test_operations_leave_their_operands_as_they_were() -> None:
    left, right = of(1, 2), of(2, 3)
    _ = left | right, left & right, left - right, RowAddressSet.union([left, right])
    assert (left, right) == (of(1, 2), of(2, 3))


def test_a_set_made_from_an_inexact_set_is_inexact() -> None:
    loose = of(1, 2, exact=False)
    assert not (loose | of(3)).exact
    assert not (loose & of(2)).exact
    assert not (loose - of(2)).exact
    assert not RowAddressSet.union([of(3), loose]).exact


def test_subtracting_an_inexact_set_is_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot be subtracted"):
        of(1, 2) - of(2, exact=False)


def test_a_set_survives_pickling() -> None:
    found = of(1, 2, 3 << 32, exact=False)
    assert pickle.loads(pickle.dumps(found)) == found

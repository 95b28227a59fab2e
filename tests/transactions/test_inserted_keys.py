from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.pb import transaction_pb2
from lance_ops.transactions import InsertedKeys

hashes = st.sets(st.integers(0, 2**64 - 1), max_size=20)


def made_of(keys: set[int], fields: tuple[int, ...] = (1,)) -> InsertedKeys:
    return InsertedKeys.from_hashes(fields, np.array(sorted(keys), np.uint64))


@given(hashes, hashes)
def test_a_shared_key_is_never_missed(first: set[int], second: set[int]) -> None:
    exact = InsertedKeys((1,), frozenset(first))
    for mine in (exact, made_of(first)):
        for theirs in (InsertedKeys((1,), frozenset(second)), made_of(second)):
            if first & second:
                assert mine.may_share_a_key(theirs)
    assert exact.may_share_a_key(InsertedKeys((1,), frozenset(second))) == bool(first & second)


def test_few_different_keys_share_none_and_incomparable_filters_may() -> None:
    other = 0xEF46DB3751D8E999
    mine, theirs = made_of({0x44BC2CF5AD770999, 0x1234567890ABCDEF}), made_of({other})
    assert not mine.may_share_a_key(theirs)
    assert not mine.may_share_a_key(InsertedKeys((1,), frozenset({other})))
    assert mine.may_share_a_key(made_of({other}, fields=(2,)))
    assert mine.may_share_a_key(InsertedKeys((1,), bloom=bytes(64)))
    assert mine.may_share_a_key(InsertedKeys((1,), bloom=b"odd"))
    assert mine.may_share_a_key(InsertedKeys((1,)))


def test_a_filter_round_trips_and_declares_its_size() -> None:
    keys = made_of({7, 8})
    assert InsertedKeys.decode(keys.encode()) == keys
    message = transaction_pb2.Transaction.KeyExistenceFilter.FromString(keys.encode())
    assert message.bloom.num_bits == 8 * 1024 * 32
    exact = InsertedKeys((1, 2), frozenset({5, 6}))
    assert InsertedKeys.decode(exact.encode()) == exact

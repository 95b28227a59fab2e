"""Conformance tests of every operation in `ALL_OPERATIONS`."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields

import pytest

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.pb import transaction_pb2
from lance_ops.table import Manifest
from lance_ops.transactions import (
    ALL_OPERATIONS,
    ApplyContext,
    Compatible,
    Footprint,
    Incompatible,
    Operation,
    Rebase,
    Remap,
    Retry,
    Transaction,
    UnknownOperation,
    judge,
)
from tests.table.samples import fragment, index, manifest
from tests.transactions.samples import ONE_OF_EACH

TABLE = manifest(fragment(0), fragment(1), version=4, indices=(index(1, covers=(0, 1)),))
CONTEXT = ApplyContext({1: manifest(fragment(0))})

each = pytest.mark.parametrize("kind", ALL_OPERATIONS, ids=lambda kind: kind.__name__)


def test_every_operation_of_the_protobuf_schema_is_registered_once() -> None:
    wire = [field.name for field in transaction_pb2.Transaction.DESCRIPTOR.oneofs_by_name["operation"].fields]

    assert sorted(kind.wire_name for kind in ALL_OPERATIONS) == sorted(wire)
    assert list(ONE_OF_EACH) == list(ALL_OPERATIONS)


@each
def test_an_operation_round_trips_through_its_message(kind: type[Operation]) -> None:
    operation = ONE_OF_EACH[kind]

    message = operation.to_pb()
    assert kind.from_pb(message, "t") == operation
    assert kind.from_pb(type(message).FromString(message.SerializeToString()), "t") == operation


@each
def test_a_transaction_round_trips_through_its_bytes(kind: type[Operation]) -> None:
    transaction = Transaction(3, ONE_OF_EACH[kind], transaction_properties={"who": "me"}, tag="v")

    assert Transaction.decode(transaction.encode(), "t") == transaction
    assert transaction.encode() == Transaction.decode(transaction.encode(), "t").encode()


@each
def test_an_empty_operation_message_keeps_its_kind(kind: type[Operation]) -> None:
    message = transaction_pb2.Transaction()
    getattr(message, kind.wire_name).SetInParent()

    transaction = Transaction.decode(message.SerializeToString(), "t")

    assert type(transaction.operation) is kind
    assert type(Transaction.decode(transaction.encode(), "t").operation) is kind


@each
def test_an_operation_is_frozen_and_pickles(kind: type[Operation]) -> None:
    operation = ONE_OF_EACH[kind]

    assert pickle.loads(pickle.dumps(operation)) == operation
    assert operation.name == kind.__name__
    with pytest.raises(FrozenInstanceError):
        setattr(operation, fields(operation)[0].name, None)  # type: ignore[arg-type]  # every operation is a dataclass


@each
def test_applying_an_operation_changes_the_table_or_raises_unsupported(kind: type[Operation]) -> None:
    before = pickle.dumps(TABLE)
    try:
        made = ONE_OF_EACH[kind].apply(_at_creation(kind), CONTEXT)
    except UnsupportedFeature as error:
        refused = str(error)
        assert kind.__name__ in refused or kind.__name__ == "Clone"
        return

    assert made != TABLE
    assert (made.max_fragment_id or 0) >= (TABLE.max_fragment_id or 0) or kind.creates_table
    assert pickle.loads(before) == TABLE


@each
def test_an_operation_with_unknown_footprint_conflicts_with_all(kind: type[Operation]) -> None:
    footprint = ONE_OF_EACH[kind].footprint()

    assert isinstance(footprint, Footprint)
    for other in ONE_OF_EACH.values():
        assert isinstance(judge(ONE_OF_EACH[kind], other), Compatible | Rebase | Remap | Retry | Incompatible)
        if not footprint.is_known:
            assert isinstance(judge(ONE_OF_EACH[kind], other), Retry)
            assert isinstance(judge(other, ONE_OF_EACH[kind]), Retry)


@each
def test_any_operation_conflicts_with_a_missing_or_unknown_transaction(kind: type[Operation]) -> None:
    assert isinstance(judge(ONE_OF_EACH[kind], None), Retry)
    assert isinstance(judge(ONE_OF_EACH[kind], UnknownOperation(b"")), Retry)


def test_a_transaction_of_an_unknown_operation_keeps_its_bytes() -> None:
    data = transaction_pb2.Transaction(read_version=3, uuid="u").SerializeToString() + b"\xa2\x1f\x02\x08\x01"

    transaction = Transaction.decode(data, "t")

    assert transaction.operation == UnknownOperation(data)
    assert transaction.read_version == 3
    assert transaction.encode() == data


def _at_creation(kind: type[Operation]) -> Manifest:
    return manifest(version=0) if kind.creates_table else TABLE

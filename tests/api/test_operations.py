"""`LanceOperation`: every operation converts to the internal form and back without loss."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from lance_ops import DatasetBasePath, LanceOperation, Transaction
from lance_ops.api.transactions import from_internal, to_internal
from lance_ops.errors import InvalidInput
from lance_ops.table import BasePath
from lance_ops.transactions import ALL_OPERATIONS, Operation, Overwrite, UnknownOperation, Update, UpdateMode
from lance_ops.transactions import Transaction as InternalTransaction
from tests.transactions.samples import ONE_OF_EACH, new_fragment, with_deletions

NAMELESS = {
    "AppendFragmentReuseTransitions",
    "DataOverlay",
    "ReserveFragments",
    "UpdateBases",
    "UpdateMemWalState",
}
"""Operations that the reference has no class for, and one whose class is left out here."""


@pytest.mark.parametrize("kind", ALL_OPERATIONS, ids=lambda kind: kind.__name__)
def test_an_operation_read_and_committed_again_is_equal(kind: type[Operation]) -> None:
    operation = ONE_OF_EACH[kind]
    if isinstance(operation, Overwrite):
        operation = replace(operation, initial_bases=(BasePath(3, "/b", "name", True, unknown=b"\xa2\x06\x00"),))
    read = from_internal(operation)
    assert isinstance(read, LanceOperation.BaseOperation)
    assert read.name == operation.name == kind.__name__
    assert type(read) is (kind if kind.__name__ in NAMELESS else getattr(LanceOperation, kind.__name__))
    assert pickle.loads(pickle.dumps(read)) == read == from_internal(to_internal(read))
    assert to_internal(read) == operation

    transaction = InternalTransaction(3, operation, transaction_properties={"who": "me"}, tag="v", unknown=b"\0")
    assert Transaction.from_internal(transaction).operation == read
    assert Transaction.from_internal(transaction).to_internal() == transaction


def test_an_operation_of_a_newer_writer_is_read_unchanged() -> None:
    operation = UnknownOperation(b"\xb2\x09\x00")
    assert from_internal(operation) is operation is to_internal(operation)
    assert isinstance(operation, LanceOperation.BaseOperation)


def test_an_operation_copies_its_arguments() -> None:
    fragments = [new_fragment("a")]
    append = LanceOperation.Append(fragments)
    overwrite = LanceOperation.Overwrite(pa.schema([("a", pa.int8())]), iter(fragments), [DatasetBasePath("/b")])  # type: ignore[arg-type]  # an iterator, which serves once
    fragments.append(new_fragment("b"))
    for operation in (append, overwrite):
        assert operation.fragments == (new_fragment("a"),)
        assert to_internal(operation) == to_internal(operation)


def test_modified_fields_say_the_mode_where_it_is_not_said() -> None:
    updated = [with_deletions(1)]
    for mode, fields, meant in (
        ("", [], UpdateMode.REWRITE_ROWS),
        ("", [1], UpdateMode.REWRITE_COLUMNS),
        ("rewrite_rows", [1], UpdateMode.REWRITE_ROWS),
        ("rewrite_columns", [], UpdateMode.REWRITE_COLUMNS),
    ):
        operation = to_internal(LanceOperation.Update([], updated, fields_modified=fields, update_mode=mode))
        assert isinstance(operation, Update) and operation.update_mode is meant
    with pytest.raises(InvalidInput, match="sideways"):
        LanceOperation.Update(update_mode="sideways")


def test_a_remapped_segment_without_details_says_none() -> None:
    index = LanceOperation.RewrittenIndex(f"{1:032x}", f"{2:032x}", "", b"", 3)
    assert index.to_internal().details is None
    assert LanceOperation.RewrittenIndex.from_internal(index.to_internal()).new_details_type_url == ""

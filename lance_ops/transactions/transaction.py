"""A transaction: one operation, the version it was planned on, an identity, and the caller's properties.

Its file in `_transactions` and its section in the manifest hold the same bytes, one protobuf message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from functools import cache
from typing import TYPE_CHECKING
from uuid import uuid4

from lance_ops.core.cached_property import cached_property
from lance_ops.core.file_names import TRANSACTIONS_DIR, transaction_name
from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.transactions import operations
from lance_ops.wire import parse_message, restore_unknown, unknown_fields

if TYPE_CHECKING:
    from lance_ops.transactions.operation import Operation

__all__ = ["COMMIT_MESSAGE", "REASON_PROPERTY", "StoredTransaction", "Transaction", "with_commit_message"]

COMMIT_MESSAGE = "__lance_commit_message"
"""The transaction property that holds the commit message."""

REASON_PROPERTY = "lance_ops.reason"
"""The transaction property that states why a person asked for the change."""


@dataclass(frozen=True)
class Transaction:
    """One change of a table. `uuid` is new for every logical commit: a writer recognises its own commit by it."""

    read_version: int
    operation: Operation
    uuid: str = field(default_factory=lambda: str(uuid4()))
    transaction_properties: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    tag: str = ""
    unknown: bytes = b""

    @property
    def file_name(self) -> str:
        """The name of the transaction's file in `_transactions`."""
        return transaction_name(self.read_version, self.uuid)

    @property
    def path(self) -> str:
        """The path of the transaction's file under the table's root."""
        return f"{TRANSACTIONS_DIR}/{self.file_name}"

    def encode(self) -> bytes:
        """Return the protobuf message; the same transaction always gives the same bytes."""
        if isinstance(self.operation, operations.UnknownOperation):
            return self.operation.message
        message = transaction_pb2.Transaction(
            read_version=self.read_version,
            uuid=self.uuid,
            tag=self.tag,
            transaction_properties=self.transaction_properties,
        )
        slot = getattr(message, self.operation.wire_name)
        slot.CopyFrom(self.operation.to_pb())
        slot.SetInParent()  # an operation with no field set must still select the oneof
        restore_unknown(message, self.unknown)
        return message.SerializeToString(deterministic=True)

    @classmethod
    def decode(cls, data: bytes, path: str) -> Transaction:
        """Read a message; `path` names it in errors. An operation that this library does not know keeps its bytes."""
        return StoredTransaction(data, path).decoded


class StoredTransaction:
    """A transaction as its file or its manifest holds it. Its operation is decoded when `decoded` is first used.

    An operation can name every fragment of the table, and most readers of a table's history need none of them. The
    constructor parses the message, and raises `CorruptFile` naming `path` for bytes that are none.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._path = path
        self._message = parse_message(transaction_pb2.Transaction, data, path, "transaction")

    @property
    def data(self) -> bytes:
        """The bytes of the message."""
        return self._data

    @property
    def uuid(self) -> str:
        """The transaction's identity."""
        return self._message.uuid

    @cached_property
    def properties(self) -> dict[str, str]:
        """The caller's properties."""
        return dict(self._message.transaction_properties)

    @property
    def operation_type(self) -> type[Operation]:
        """The class of the operation; `UnknownOperation` for one that this library does not know."""
        which = self._message.WhichOneof("operation")
        return operations.UnknownOperation if which is None else _by_wire_name()[which]

    @property
    def delete_predicate(self) -> str:
        """The condition that a `Delete` states, without decoding its fragments; empty for other operations."""
        return self._message.delete.predicate

    @cached_property
    def decoded(self) -> Transaction:
        """The whole transaction; raises as `Operation.from_pb` does."""
        message, kind = self._message, self.operation_type
        is_known = kind is not operations.UnknownOperation
        return Transaction(
            read_version=message.read_version,
            uuid=message.uuid,
            operation=(
                kind.from_pb(getattr(message, kind.wire_name), self._path)
                if is_known
                else operations.UnknownOperation(self._data)
            ),
            transaction_properties=self.properties,
            tag=message.tag,
            unknown=unknown_fields(message) if is_known else b"",
        )


def with_commit_message(properties: Mapping[str, str] | None, message: str | None) -> dict[str, str]:
    """Return a transaction's properties with the commit message added, unless it is None."""
    return {**(properties or {}), **({} if message is None else {COMMIT_MESSAGE: message})}


@cache
def _by_wire_name() -> dict[str, type[Operation]]:
    return {operation.wire_name: operation for operation in operations.ALL_OPERATIONS}

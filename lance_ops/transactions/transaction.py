"""A transaction: one operation, the version it was planned on, an identity, and the caller's properties.

Its file in `_transactions` and its section in the manifest hold the same bytes, one protobuf message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from uuid import uuid4

from lance_ops.core.file_names import TRANSACTIONS_DIR, transaction_name
from lance_ops.pb import transaction_pb2
from lance_ops.transactions.operation import Operation
from lance_ops.transactions.operations import ALL_OPERATIONS, UnknownOperation
from lance_ops.wire import parse_message, restore_unknown, unknown_fields

__all__ = ["COMMIT_MESSAGE", "Transaction", "with_commit_message"]

COMMIT_MESSAGE = "__lance_commit_message"
"""The transaction property that holds the commit message."""

_BY_WIRE_NAME = {operation.wire_name: operation for operation in ALL_OPERATIONS}


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
        if isinstance(self.operation, UnknownOperation):
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
        message = parse_message(transaction_pb2.Transaction, data, path, "transaction")
        which = message.WhichOneof("operation")
        operation: Operation
        if which is None:
            operation = UnknownOperation(data)
        else:
            operation = _BY_WIRE_NAME[which].from_pb(getattr(message, which), path)
        return cls(
            read_version=message.read_version,
            uuid=message.uuid,
            operation=operation,
            transaction_properties=dict(message.transaction_properties),
            tag=message.tag,
            unknown=unknown_fields(message) if which is not None else b"",
        )


def with_commit_message(properties: Mapping[str, str] | None, message: str | None) -> dict[str, str]:
    """Return a transaction's properties with the commit message added, unless it is None."""
    return {**(properties or {}), **({} if message is None else {COMMIT_MESSAGE: message})}

"""`Transaction`: one operation and the version it was planned on, under the reference's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from uuid import uuid4

from lance_ops import transactions as made
from lance_ops.api.transactions.operations import AnyOperation, from_internal, to_internal
from lance_ops.core.records import dataclass

__all__ = ["Transaction", "as_read"]


@dataclass(frozen=True)
class Transaction:
    """A transaction, which `LanceDataset.commit` takes and `read_transaction` returns.

    Each logical commit has its own `uuid`.
    """

    read_version: int
    operation: AnyOperation
    uuid: str = field(default_factory=lambda: str(uuid4()))
    transaction_properties: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    tag: str = ""
    unknown: bytes = b""

    def to_internal(self) -> made.Transaction:
        """Return the transaction of `lance_ops.transactions` to commit."""
        return made.Transaction(**{**vars(self), "operation": to_internal(self.operation)})

    @classmethod
    def from_internal(cls, transaction: made.Transaction) -> Transaction:
        """Return a transaction of `lance_ops.transactions` in the public form."""
        return cls(**{**vars(transaction), "operation": from_internal(transaction.operation)})


def as_read(transaction: made.Transaction | None) -> Transaction | None:
    """Return the transaction of a version in the public form, or None if it was not kept."""
    return None if transaction is None else Transaction.from_internal(transaction)

"""Clone: the first transaction of a copy that shares its source's files, or has its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.pb import transaction_pb2
from lance_ops.table import Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.operation import Context, Operation

__all__ = ["Clone"]


@dataclass(frozen=True)
class Clone(Operation):
    """Where a table came from. It makes a first manifest out of another table's, so it is never rebased."""

    is_shallow: bool
    ref_version: int
    ref_path: str
    ref_name: str | None = None
    branch_name: str | None = None

    wire_name = "clone"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Clone, path: str) -> Self:
        return cls(
            is_shallow=message.is_shallow,
            ref_version=message.ref_version,
            ref_path=message.ref_path,
            ref_name=message.ref_name if message.HasField("ref_name") else None,
            branch_name=message.branch_name if message.HasField("branch_name") else None,
        )

    def to_pb(self) -> transaction_pb2.Transaction.Clone:
        return transaction_pb2.Transaction.Clone(
            is_shallow=self.is_shallow,
            ref_version=self.ref_version,
            ref_path=self.ref_path,
            ref_name=self.ref_name,
            branch_name=self.branch_name,
        )

    def footprint(self) -> Footprint:
        return Footprint()

    def apply(self, manifest: Manifest, context: Context) -> Manifest:
        raise UnsupportedFeature("cloning a table", self.ref_path)

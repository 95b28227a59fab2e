"""The operation `ReserveFragments`: reserve ids for fragments that are not written yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["ReserveFragments"]


@dataclass(frozen=True)
class ReserveFragments(Operation):
    """Raise the highest fragment id, so that an index can be remapped to addresses in future fragments."""

    num_fragments: int

    wire_name = "reserve_fragments"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.ReserveFragments, path: str) -> Self:
        return cls(message.num_fragments)

    def to_pb(self) -> transaction_pb2.Transaction.ReserveFragments:
        return transaction_pb2.Transaction.ReserveFragments(num_fragments=self.num_fragments)

    def footprint(self) -> Footprint:
        return Footprint()

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        return replace(manifest, max_fragment_id=manifest.next_fragment_id + self.num_fragments - 1)

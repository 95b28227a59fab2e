"""Operations of other writers that this library decodes and encodes, but cannot judge or apply."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from google.protobuf.message import Message

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["AppendFragmentReuseTransitions", "DataOverlay", "UnknownOperation", "UpdateMemWalState"]


@dataclass(frozen=True)
class _Unsupported(Operation):
    """An operation as its encoded message; it conflicts with every other operation."""

    message: bytes = b""

    _wire_type: ClassVar[type[Message]]

    @classmethod
    def from_pb(cls, message: Any, path: str) -> Self:
        return cls(message.SerializeToString())

    def to_pb(self) -> Message:
        return self._wire_type.FromString(self.message)

    def footprint(self) -> Footprint:
        return Footprint(is_known=False)

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        raise UnsupportedFeature(f"the operation {self.name}")


class DataOverlay(_Unsupported):
    """New values for some cells, in overlay files."""

    wire_name = "data_overlay"
    _wire_type = transaction_pb2.Transaction.DataOverlay


class UpdateMemWalState(_Unsupported):
    """Progress of merging write-ahead tables."""

    wire_name = "update_mem_wal_state"
    _wire_type = transaction_pb2.Transaction.UpdateMemWalState


class AppendFragmentReuseTransitions(_Unsupported):
    """New entries of the fragment-reuse index."""

    wire_name = "append_fri_transitions"
    _wire_type = transaction_pb2.Transaction.AppendFragmentReuseTransitions


class UnknownOperation(_Unsupported):
    """An operation of a newer writer; `message` is the whole encoded transaction."""

    wire_name = ""
    _wire_type = transaction_pb2.Transaction

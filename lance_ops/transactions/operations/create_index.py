"""The operation `CreateIndex`: add segments of indices, and remove segments."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import IndexMetadata, Manifest
from lance_ops.transactions.footprint import Footprint, IndexedSegment
from lance_ops.transactions.manifest_changes import holds_row_addresses
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["CreateIndex"]


@dataclass(frozen=True)
class CreateIndex(Operation):
    """Add segments and remove others; an index is dropped by removing all of its segments.

    A segment of the same name that is not removed stays beside the new ones.
    """

    new_indices: tuple[IndexMetadata, ...]
    removed_indices: tuple[IndexMetadata, ...] = ()

    wire_name = "create_index"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.CreateIndex, path: str) -> Self:
        return cls(
            tuple(IndexMetadata.from_pb(index, path) for index in message.new_indices),
            tuple(IndexMetadata.from_pb(index, path) for index in message.removed_indices),
        )

    def to_pb(self) -> transaction_pb2.Transaction.CreateIndex:
        return transaction_pb2.Transaction.CreateIndex(
            new_indices=[index.to_pb() for index in self.new_indices],
            removed_indices=[index.to_pb() for index in self.removed_indices],
        )

    def footprint(self) -> Footprint:
        return Footprint(
            index_names=frozenset(index.name for index in self.new_indices + self.removed_indices),
            index_ids=frozenset(index.uuid for index in self.removed_indices),
            new_segments=tuple(
                IndexedSegment(
                    index.uuid, frozenset(index.fields), index.fragment_bitmap, not holds_row_addresses(index)
                )
                for index in self.new_indices
            ),
        )

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        removed = {index.uuid for index in self.removed_indices}
        kept = tuple(index for index in manifest.indices if index.uuid not in removed)
        return replace(manifest, indices=kept + self.new_indices)

"""The operation `Append`: add rows in new fragments."""

from __future__ import annotations

from typing import Self

from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import Fragment, Manifest, change_manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.manifest_changes import assign_ids, live_fields
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["Append"]


@dataclass(frozen=True)
class Append(Operation):
    """Add fragments; the commit assigns their ids."""

    fragments: tuple[Fragment, ...]

    wire_name = "append"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Append, path: str) -> Self:
        return cls(tuple(Fragment.from_pb(fragment, path) for fragment in message.fragments))

    def to_pb(self) -> transaction_pb2.Transaction.Append:
        return transaction_pb2.Transaction.Append(fragments=[fragment.to_pb() for fragment in self.fragments])

    def footprint(self) -> Footprint:
        return Footprint(adds_rows=True, new_fields=live_fields(self.fragments))

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        new, max_fragment_id, next_row_id = assign_ids(self.fragments, manifest)
        fragments = manifest.fragments.with_added(new)
        return change_manifest(manifest, fragments=fragments, max_fragment_id=max_fragment_id, next_row_id=next_row_id)

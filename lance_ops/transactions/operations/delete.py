"""The operation `Delete`: delete rows through larger deletion vectors."""

from __future__ import annotations

from typing import Self

from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import Fragment, Manifest, change_manifest, with_deletion_file
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.manifest_changes import check_fragments_exist, drop_orphaned_indices, fragments_by_id
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["Delete"]


@dataclass(frozen=True)
class Delete(Operation):
    """Give each updated fragment a new deletion file, and drop the fragments that have no row left.

    Only the deletion file of an updated fragment counts: a concurrent transaction may have changed its data files.
    """

    updated_fragments: tuple[Fragment, ...]
    deleted_fragment_ids: tuple[int, ...]
    predicate: str = ""

    wire_name = "delete"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Delete, path: str) -> Self:
        return cls(
            updated_fragments=tuple(Fragment.from_pb(fragment, path) for fragment in message.updated_fragments),
            deleted_fragment_ids=tuple(message.deleted_fragment_ids),
            predicate=message.predicate,
        )

    def to_pb(self) -> transaction_pb2.Transaction.Delete:
        return transaction_pb2.Transaction.Delete(
            updated_fragments=[fragment.to_pb() for fragment in self.updated_fragments],
            deleted_fragment_ids=self.deleted_fragment_ids,
            predicate=self.predicate,
        )

    def footprint(self) -> Footprint:
        return Footprint(
            deletes_rows=frozenset(fragment.id for fragment in self.updated_fragments),
            drops=frozenset(self.deleted_fragment_ids),
        )

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        updated = fragments_by_id(self.updated_fragments)
        dropped = frozenset(self.deleted_fragment_ids)
        check_fragments_exist(manifest, dropped | updated.keys(), self.name)
        updated_by_id = {
            fragment.id: with_deletion_file(fragment, updated[fragment.id].deletion_file)
            for fragment in manifest.fragments.having(updated)
        }
        fragments = manifest.fragments.with_changes(updated_by_id, dropped)
        indices = drop_orphaned_indices(manifest.indices, manifest.schema, fragments)
        return change_manifest(manifest, fragments=fragments, indices=indices)

"""The operation `Merge`: add columns, or cast columns, in new files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Self

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.pb import transaction_pb2
from lance_ops.table import Fragment, FragmentList, Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.manifest_changes import (
    drop_orphaned_indices,
    fragments_by_id,
    remove_changed_coverage,
    stamp_all_rows,
)
from lance_ops.transactions.operation import ApplyContext, Operation
from lance_ops.wire import metadata_to_pb, schema_from_pb, schema_to_pb

__all__ = ["Merge"]


@dataclass(frozen=True)
class Merge(Operation):
    """Restate every fragment, under its id and with its new list of files, and the schema.

    `preserves_nullability` means that rows written for the old schema are valid in the new one.
    """

    fragments: tuple[Fragment, ...]
    schema: Schema
    preserves_nullability: bool = False

    wire_name = "merge"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Merge, path: str) -> Self:
        return cls(
            fragments=tuple(Fragment.from_pb(fragment, path) for fragment in message.fragments),
            schema=schema_from_pb(message.schema, message.schema_metadata, path),
            preserves_nullability=message.preserves_nullability,
        )

    def to_pb(self) -> transaction_pb2.Transaction.Merge:
        return transaction_pb2.Transaction.Merge(
            fragments=[fragment.to_pb() for fragment in self.fragments],
            schema=schema_to_pb(self.schema),
            schema_metadata=metadata_to_pb(self.schema.metadata),
            preserves_nullability=self.preserves_nullability,
        )

    def footprint(self) -> Footprint:
        return Footprint(restates_fragments=True, schema=True, forbids_nulls=not self.preserves_nullability)

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        before = fragments_by_id(manifest.fragments)
        if _rows(self.fragments) != _rows(manifest.fragments):
            raise InvalidInput("a merge must restate every fragment of the table, each with all of its rows")
        indices = remove_changed_coverage(manifest.indices, before, self.fragments, self.schema)
        fragments = FragmentList(self.fragments)
        if manifest.uses_stable_row_ids:
            fragments = FragmentList(
                stamp_all_rows(fragment, manifest.version + 1)
                if fragment.files != before[fragment.id].files
                else fragment
                for fragment in fragments
            )
        indices = drop_orphaned_indices(indices, self.schema, fragments)
        return replace(manifest, schema=self.schema, fragments=fragments, indices=indices)


def _rows(fragments: Iterable[Fragment]) -> Mapping[int, int]:
    return {fragment.id: fragment.physical_rows for fragment in fragments}

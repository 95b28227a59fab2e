"""The operation `Project`: drop or rename columns without rewriting data."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.pb import transaction_pb2
from lance_ops.table import FragmentList, Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.manifest_changes import drop_orphaned_indices
from lance_ops.transactions.operation import ApplyContext, Operation
from lance_ops.wire import schema_from_pb, schema_to_pb

__all__ = ["Project"]


@dataclass(frozen=True)
class Project(Operation):
    """Replace the fields of the schema, but not its metadata. Files that hold no field of it leave their fragments.

    `preserves_nullability` means that no field became stricter, so that concurrent writes stay valid.
    """

    schema: Schema
    preserves_nullability: bool = False

    wire_name = "project"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Project, path: str) -> Self:
        return cls(schema_from_pb(message.schema, {}, path), message.preserves_nullability)

    def to_pb(self) -> transaction_pb2.Transaction.Project:
        return transaction_pb2.Transaction.Project(
            schema=schema_to_pb(self.schema), preserves_nullability=self.preserves_nullability
        )

    def footprint(self) -> Footprint:
        return Footprint(schema=True, forbids_nulls=not self.preserves_nullability)

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        schema = replace(self.schema, metadata=manifest.schema.metadata)
        kept = {node.id for node in schema.walk()}
        fragments = FragmentList(
            replace(fragment, files=tuple(file for file in fragment.files if kept.intersection(file.fields)))
            for fragment in manifest.fragments
        )
        indices = drop_orphaned_indices(manifest.indices, schema, fragments)
        return replace(manifest, schema=schema, fragments=fragments, indices=indices)

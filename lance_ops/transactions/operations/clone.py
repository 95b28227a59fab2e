"""Clone: the first transaction of a copy that shares its source's files, or has its own.

The copy's first version has the number of the version it was made of. A shallow one declares the source as a base
path, under the first free id; what the source has under base paths of its own stays there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.pb import transaction_pb2
from lance_ops.table import BasePath, Fragment, Fragments, Manifest
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
        raise UnsupportedFeature("a clone of it over a table that is there (a clone begins a table)", self.ref_path)

    def first_manifest(self, source: Manifest) -> Manifest:
        """Return what the copy begins with, the manifest it is a clone of being `source`.

        Of a deep clone every file is taken to be copied into the new root.
        """
        bases = source.base_paths
        own: int | None = None
        if self.is_shallow:
            own = max((base.id for base in bases), default=-1) + 1
            bases = (BasePath(own, self.ref_path, self.ref_name, is_dataset_root=True), *bases)

        def moved(base_id: int | None) -> int | None:
            return own if base_id is None or not self.is_shallow else base_id

        def moved_fragment(fragment: Fragment) -> Fragment:
            deletions = fragment.deletion_file
            return replace(
                fragment,
                files=tuple(replace(file, base_id=moved(file.base_id)) for file in fragment.files),
                deletion_file=deletions and replace(deletions, base_id=moved(deletions.base_id)),
            )

        return replace(
            source,
            version=self.ref_version,
            fragments=Fragments(moved_fragment(fragment) for fragment in source.fragments),
            indices=tuple(replace(index, base_id=moved(index.base_id)) for index in source.indices),
            base_paths=bases if self.is_shallow else (),
            branch=self.branch_name,
        )

"""The operation `Clone`: the first transaction of a copy of a table.

The copy's first version has the number of the version that it was made from. A shallow clone shares the source's files:
it declares the source as a base path, under the first free id. Files under base paths of the source stay there. A deep
clone has its own copies of all files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import BasePath, Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["Clone"]


@dataclass(frozen=True)
class Clone(Operation):
    """The source of a copy. It makes the copy's first manifest, so it is never rebased."""

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
        return Footprint(replaces_table=True, schema=True, adds_rows=True)

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        raise UnsupportedFeature("a clone onto an existing table (a clone creates a table)", self.ref_path)

    def first_manifest(self, source: Manifest) -> Manifest:
        """Return the copy's first manifest, made from the manifest `source`.

        For a deep clone, `source` must name the copied files, all of them in the new root.
        """
        if not self.is_shallow:
            return replace(source, version=self.ref_version, base_paths=(), branch=self.branch_name)
        taken = {base.id for base in source.base_paths}
        own = next(number for number in range(len(taken) + 1) if number not in taken)
        return replace(
            source,
            version=self.ref_version,
            fragments=source.fragments.rebased_under(own),
            indices=tuple(replace(index, base_id=_base_id_in_copy(index.base_id, own)) for index in source.indices),
            base_paths=(BasePath(own, self.ref_path, self.ref_name, is_dataset_root=True), *source.base_paths),
            branch=self.branch_name,
        )


def _base_id_in_copy(base_id: int | None, own: int) -> int:
    return own if base_id is None else base_id

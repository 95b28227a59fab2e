"""Clone: the first transaction of a copy that shares its source's files, or has its own.

The copy's first version has the number of the version it was made of. A shallow one declares the source as a base
path, under the first free id; what the source has under base paths of its own stays there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.pb import transaction_pb2
from lance_ops.table import BasePath, Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.operation import ApplyContext, Operation

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
        return Footprint(replaces_table=True, schema=True, adds_rows=True)

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        raise UnsupportedFeature("a clone of it over a table that is there (a clone begins a table)", self.ref_path)

    def first_manifest(self, source: Manifest) -> Manifest:
        """Return what the copy begins with, the manifest it is a clone of being `source`.

        Of a deep clone `source` must name the copies, all of them in the new root.
        """
        if not self.is_shallow:
            return replace(source, version=self.ref_version, base_paths=(), branch=self.branch_name)
        taken = {base.id for base in source.base_paths}
        own = next(number for number in range(len(taken) + 1) if number not in taken)
        return replace(
            source,
            version=self.ref_version,
            fragments=source.fragments.rebased_under(own),
            indices=tuple(replace(index, base_id=_seen(index.base_id, own)) for index in source.indices),
            base_paths=(BasePath(own, self.ref_path, self.ref_name, is_dataset_root=True), *source.base_paths),
            branch=self.branch_name,
        )


def _seen(base_id: int | None, own: int) -> int:
    return own if base_id is None else base_id

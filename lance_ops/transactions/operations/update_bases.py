"""The operation `UpdateBases`: declare base paths, under which files may be."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import BasePath, Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["UpdateBases"]


@dataclass(frozen=True)
class UpdateBases(Operation):
    """Declare base paths; one with id 0 gets the next free id."""

    new_bases: tuple[BasePath, ...]

    wire_name = "update_bases"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.UpdateBases, path: str) -> Self:
        return cls(tuple(BasePath.from_pb(base) for base in message.new_bases))

    def to_pb(self) -> transaction_pb2.Transaction.UpdateBases:
        return transaction_pb2.Transaction.UpdateBases(new_bases=[base.to_pb() for base in self.new_bases])

    def footprint(self) -> Footprint:
        names = {f"path {base.path}" for base in self.new_bases}
        names |= {f"name {base.name}" for base in self.new_bases if base.name}
        names |= {f"id {base.id}" for base in self.new_bases if base.id}
        return Footprint(needs_table=False, bases=frozenset(names))

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        bases = list(manifest.base_paths)
        for new in self.new_bases:
            if new.id == 0:
                new = replace(new, id=max((base.id for base in bases), default=0) + 1)
            for base in bases:
                if new.id == base.id or new.path == base.path or (new.name and new.name == base.name):
                    raise InvalidInput(
                        f"base path {new.path!r} clashes with {base.path!r}: ids, names and paths must differ"
                    )
            bases.append(new)
        return replace(manifest, base_paths=tuple(bases))

"""The operation `Restore`: make an old version's content the newest version."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import FeatureFlag, Manifest, check_writable
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["Restore"]


@dataclass(frozen=True)
class Restore(Operation):
    """Restore everything of a version except the counters, which never decrease: no id is assigned twice."""

    version: int

    wire_name = "restore"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Restore, path: str) -> Self:
        return cls(message.version)

    def to_pb(self) -> transaction_pb2.Transaction.Restore:
        return transaction_pb2.Transaction.Restore(version=self.version)

    @property
    def needed_versions(self) -> tuple[int, ...]:
        return (self.version,)

    def footprint(self) -> Footprint:
        return Footprint(replaces_table=True, needs_table=False, schema=True, adds_rows=True)

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        old = context.manifests[self.version]
        check_writable(old, f"version {self.version}")
        if manifest.uses_stable_row_ids and not old.uses_stable_row_ids:
            raise InvalidInput(
                f"version {self.version} is older than the table's stable row ids: its addresses could be mistaken for "
                "row ids that were assigned later"
            )
        sticky = manifest.reader_feature_flags & FeatureFlag.MIXED_FILE_VERSIONS
        highest = [known for known in (old.max_fragment_id, manifest.max_fragment_id) if known is not None]
        return replace(
            old,
            max_fragment_id=max(highest, default=None),
            next_row_id=max(old.next_row_id, manifest.next_row_id),
            reader_feature_flags=old.reader_feature_flags | sticky,
            writer_feature_flags=old.writer_feature_flags | sticky,
        )

"""Change one of the manifest's maps: set keys, remove keys, or replace the whole map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lance_ops.core.errors import IncompatibleTransaction
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema, declares_primary_key
from lance_ops.pb import transaction_pb2
from lance_ops.transactions.footprint import EVERY_KEY, Key

__all__ = ["UpdateMap", "with_field_metadata"]


@dataclass(frozen=True)
class UpdateMap:
    """New values by key, None to remove the key; with `replace` the values are the whole new map."""

    updates: Mapping[str, str | None]
    replace: bool = False

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.UpdateMap) -> UpdateMap:
        """Read the wire message."""
        entries = {entry.key: entry.value if entry.HasField("value") else None for entry in message.update_entries}
        return cls(entries, message.replace)

    def to_pb(self) -> transaction_pb2.Transaction.UpdateMap:
        """Return the wire message."""
        entries = [
            transaction_pb2.Transaction.UpdateMapEntry(key=key, value=value) for key, value in self.updates.items()
        ]
        return transaction_pb2.Transaction.UpdateMap(update_entries=entries, replace=self.replace)

    def apply(self, old: Mapping[str, str]) -> dict[str, str]:
        """Return the map after the update."""
        new = {} if self.replace else dict(old)
        for key, value in self.updates.items():
            if value is None:
                new.pop(key, None)
            else:
                new[key] = value
        return new

    def keys(self, scope: str) -> set[Key]:
        """Return the keys that the update touches, each with the scope."""
        return {(scope, EVERY_KEY)} if self.replace else {(scope, key) for key in self.updates}


def with_field_metadata(schema: Schema, field_id: int, update: UpdateMap) -> Schema:
    """Return the schema with one field's metadata updated; raise `IncompatibleTransaction` if it has no such field."""
    if schema.by_id(field_id) is None:
        raise IncompatibleTransaction(f"field {field_id} is not in the schema any more")

    def rebuilt(node: Field) -> Field:
        if node.id != field_id:
            return replace(node, children=tuple(map(rebuilt, node.children)))
        metadata = update.apply(node.metadata)
        return replace(node, metadata=metadata, unenforced_primary_key=declares_primary_key(metadata))

    return replace(schema, fields=tuple(map(rebuilt, schema.fields)))

"""The operation `UpdateConfig`: change config, and metadata of the table, the schema and its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Self

from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import Manifest
from lance_ops.transactions.footprint import Footprint, Key
from lance_ops.transactions.manifest_changes import UpdateMap, with_field_metadata
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["UpdateConfig"]


@dataclass(frozen=True)
class UpdateConfig(Operation):
    """Update any of the manifest's maps; None leaves a map unchanged."""

    config_updates: UpdateMap | None = None
    table_metadata_updates: UpdateMap | None = None
    schema_metadata_updates: UpdateMap | None = None
    field_metadata_updates: Mapping[int, UpdateMap] = field(default_factory=dict)

    wire_name = "update_config"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.UpdateConfig, path: str) -> Self:
        config = _optional(message, "config_updates")
        schema = _optional(message, "schema_metadata_updates")
        fields = {
            field_id: UpdateMap.from_pb(message.field_metadata_updates[field_id])
            for field_id in message.field_metadata_updates
        }
        # Older writers use these fields instead of update maps.
        if config is None and (message.upsert_values or message.delete_keys):
            config = UpdateMap({**message.upsert_values, **dict.fromkeys(message.delete_keys)})
        if schema is None and message.schema_metadata:
            schema = UpdateMap(dict(message.schema_metadata), replace=True)
        for field_id in message.field_metadata:
            metadata = dict(message.field_metadata[field_id].metadata)
            fields.setdefault(field_id, UpdateMap(metadata, replace=True))
        return cls(config, _optional(message, "table_metadata_updates"), schema, fields)

    def to_pb(self) -> transaction_pb2.Transaction.UpdateConfig:
        return transaction_pb2.Transaction.UpdateConfig(
            config_updates=self.config_updates.to_pb() if self.config_updates else None,
            table_metadata_updates=self.table_metadata_updates.to_pb() if self.table_metadata_updates else None,
            schema_metadata_updates=self.schema_metadata_updates.to_pb() if self.schema_metadata_updates else None,
            field_metadata_updates={key: update.to_pb() for key, update in self.field_metadata_updates.items()},
        )

    def footprint(self) -> Footprint:
        keys: set[Key] = set()
        scopes = {
            "config": self.config_updates,
            "table": self.table_metadata_updates,
            "schema": self.schema_metadata_updates,
        }
        for scope, update in scopes.items():
            if update is not None:
                keys |= update.keys(scope)
        for field_id, update in self.field_metadata_updates.items():
            keys |= update.keys(f"field {field_id}")
        footprint = Footprint(keys=frozenset(keys))
        return replace(footprint, needs_table=bool(footprint.metadata_keys))

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        schema = manifest.schema
        if self.schema_metadata_updates is not None:
            schema = replace(schema, metadata=self.schema_metadata_updates.apply(schema.metadata))
        for field_id, update in self.field_metadata_updates.items():
            schema = with_field_metadata(schema, field_id, update)
        config, table = self.config_updates, self.table_metadata_updates
        return replace(
            manifest,
            schema=schema,
            config=config.apply(manifest.config) if config else manifest.config,
            table_metadata=table.apply(manifest.table_metadata) if table else manifest.table_metadata,
        )


def _optional(message: transaction_pb2.Transaction.UpdateConfig, name: str) -> UpdateMap | None:
    return UpdateMap.from_pb(getattr(message, name)) if message.HasField(name) else None

"""The operation `Overwrite`: replace the table's content, or create a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Self

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.pb import transaction_pb2
from lance_ops.table import BasePath, DataFormat, FeatureFlag, Fragment, FragmentList, Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.manifest_changes import assign_ids
from lance_ops.transactions.operation import ApplyContext, Operation
from lance_ops.wire import metadata_to_pb, schema_from_pb, schema_to_pb

__all__ = ["Overwrite"]


@dataclass(frozen=True)
class Overwrite(Operation):
    """Replace schema and fragments, drop all indices, and merge config; fragment and row ids continue to count up.

    `reads_rows` says that the new rows were computed from those of the read version. It is in no file: only a commit
    asks for it, because the rows must not have changed since.
    """

    fragments: tuple[Fragment, ...]
    schema: Schema
    config_upsert_values: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[BasePath, ...] = ()
    reads_rows: bool = False

    wire_name = "overwrite"
    creates_table = True

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Overwrite, path: str) -> Self:
        return cls(
            fragments=tuple(Fragment.from_pb(fragment, path) for fragment in message.fragments),
            schema=schema_from_pb(message.schema, message.schema_metadata, path),
            config_upsert_values=dict(message.config_upsert_values),
            initial_bases=tuple(BasePath.from_pb(base) for base in message.initial_bases),
        )

    def to_pb(self) -> transaction_pb2.Transaction.Overwrite:
        return transaction_pb2.Transaction.Overwrite(
            fragments=[fragment.to_pb() for fragment in self.fragments],
            schema=schema_to_pb(self.schema),
            schema_metadata=metadata_to_pb(self.schema.metadata),
            config_upsert_values=self.config_upsert_values,
            initial_bases=[base.to_pb() for base in self.initial_bases],
        )

    def footprint(self) -> Footprint:
        keys = frozenset(("config", key) for key in self.config_upsert_values)
        return Footprint(
            replaces_table=True,
            reads_rows=self.reads_rows,
            needs_table=False,
            schema=True,
            adds_rows=True,
            keys=keys,
        )

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        is_new = manifest.version == 0
        if self.initial_bases and not is_new:
            raise InvalidInput("an overwrite cannot add base paths: only the creation of a table can")
        if context.stable_row_ids and not (is_new or manifest.uses_stable_row_ids):
            raise InvalidInput("stable row ids can only be chosen when the table is created")
        if context.stable_row_ids:
            both = FeatureFlag.STABLE_ROW_IDS
            manifest = replace(
                manifest,
                reader_feature_flags=manifest.reader_feature_flags | both,
                writer_feature_flags=manifest.writer_feature_flags | both,
            )
        fragments, max_fragment_id, next_row_id = assign_ids(self.fragments, manifest)
        return replace(
            manifest,
            schema=self.schema,
            fragments=FragmentList(fragments),
            max_fragment_id=max_fragment_id,
            next_row_id=next_row_id,
            indices=(),
            data_format=self._data_format(manifest, context, is_new=is_new),
            config={**manifest.config, **self.config_upsert_values},
            base_paths=manifest.base_paths + self.initial_bases,
        )

    def _data_format(self, manifest: Manifest, context: ApplyContext, *, is_new: bool) -> DataFormat:
        if context.data_storage_version is not None:
            return DataFormat(FileVersion.parse(context.data_storage_version).value)
        if not is_new:
            return manifest.data_format
        numbers = next((file.numbers for fragment in self.fragments for file in fragment.files), None)
        if numbers is None:
            return manifest.data_format
        return DataFormat(FileVersion.from_numbers(*numbers, where="overwrite").value)

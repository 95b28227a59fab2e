"""The operation `Update`: give rows new values, in new fragments or in place by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Self

from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import Fragment, IndexMetadata, Manifest, with_deletion_file
from lance_ops.table.rows import count_row_ids, decode_bitmap, encode_bitmap
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.inserted_keys import InsertedKeys
from lance_ops.transactions.manifest_changes import (
    assign_fragment_ids,
    assign_row_ids,
    check_fragments_exist,
    drop_orphaned_indices,
    fragments_by_id,
    holds_row_addresses,
    live_fields,
    remove_changed_coverage,
    stamp_moved_rows,
    stamp_rewritten_offsets,
)
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["Update", "UpdateMode"]


class UpdateMode(Enum):
    """Whether updated rows move to new fragments or stay; the value is the wire message's number."""

    REWRITE_ROWS = 0
    REWRITE_COLUMNS = 1


@dataclass(frozen=True)
class Update(Operation):
    """Update rows; `merge_insert` also inserts and deletes rows with this operation.

    By rows: the old rows are deleted in `updated_fragments`, or with all other rows of `removed_fragment_ids`;
    `new_fragments` hold them with their new values. By columns: `updated_fragments` have new files for
    `fields_modified`. The reference often leaves the mode unset, so any modified field also means by columns.
    `updated_offsets` are the changed rows, by fragment. `inserted_rows` is the encoded filter of inserted keys.
    """

    removed_fragment_ids: tuple[int, ...] = ()
    updated_fragments: tuple[Fragment, ...] = ()
    new_fragments: tuple[Fragment, ...] = ()
    fields_modified: tuple[int, ...] = ()
    fields_for_preserving_frag_bitmap: tuple[int, ...] = ()
    update_mode: UpdateMode = UpdateMode.REWRITE_ROWS
    updated_offsets: Mapping[int, BitMap] = field(default_factory=dict)
    inserted_rows: bytes | None = None
    compacted_sstables: tuple[bytes, ...] = ()

    wire_name = "update"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Update, path: str) -> Self:
        offsets = {
            key: BitMap(message.updated_fragment_offsets[key].values) for key in message.updated_fragment_offsets
        }
        for key in message.updated_fragment_offset_bitmaps:
            offsets[key] = decode_bitmap(message.updated_fragment_offset_bitmaps[key], path, "updated offsets")
        columns = message.update_mode == transaction_pb2.Transaction.REWRITE_COLUMNS
        return cls(
            removed_fragment_ids=tuple(message.removed_fragment_ids),
            updated_fragments=tuple(Fragment.from_pb(fragment, path) for fragment in message.updated_fragments),
            new_fragments=tuple(Fragment.from_pb(fragment, path) for fragment in message.new_fragments),
            fields_modified=tuple(message.fields_modified),
            fields_for_preserving_frag_bitmap=tuple(message.fields_for_preserving_frag_bitmap),
            update_mode=UpdateMode.REWRITE_COLUMNS if columns else UpdateMode.REWRITE_ROWS,
            updated_offsets=offsets,
            inserted_rows=message.inserted_rows.SerializeToString() if message.HasField("inserted_rows") else None,
            compacted_sstables=tuple(table.SerializeToString() for table in message.compacted_sstables),
        )

    def to_pb(self) -> transaction_pb2.Transaction.Update:
        columns = self.update_mode is UpdateMode.REWRITE_COLUMNS
        message = transaction_pb2.Transaction.Update(
            removed_fragment_ids=self.removed_fragment_ids,
            updated_fragments=[fragment.to_pb() for fragment in self.updated_fragments],
            new_fragments=[fragment.to_pb() for fragment in self.new_fragments],
            fields_modified=self.fields_modified,
            fields_for_preserving_frag_bitmap=self.fields_for_preserving_frag_bitmap,
            update_mode=(
                transaction_pb2.Transaction.REWRITE_COLUMNS if columns else transaction_pb2.Transaction.REWRITE_ROWS
            ),
            updated_fragment_offset_bitmaps={key: encode_bitmap(rows) for key, rows in self.updated_offsets.items()},
        )
        if self.inserted_rows is not None:
            message.inserted_rows.MergeFromString(self.inserted_rows)
        for table in self.compacted_sstables:
            message.compacted_sstables.add().MergeFromString(table)
        return message

    @property
    def in_place(self) -> bool:
        """Whether rows get new values in place."""
        return self.update_mode is UpdateMode.REWRITE_COLUMNS or bool(self.fields_modified)

    def footprint(self) -> Footprint:
        updated = frozenset(fragment.id for fragment in self.updated_fragments)
        removed = frozenset(self.removed_fragment_ids)
        in_place = self.in_place
        return Footprint(
            deletes_rows=frozenset() if in_place else updated,
            drops=removed,
            moves_rows=removed if in_place else updated | removed,
            writes_values=dict.fromkeys(updated, frozenset(self.fields_modified)) if in_place else {},
            restates_files=updated if in_place else frozenset(),
            adds_rows=bool(self.new_fragments),
            new_fields=live_fields(self.new_fragments),
            inserted_keys=None if self.inserted_rows is None else InsertedKeys.decode(self.inserted_rows),
            is_known=not self.compacted_sstables,
        )

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        if self.compacted_sstables:
            raise UnsupportedFeature("an update that merges write-ahead tables")
        updated = fragments_by_id(self.updated_fragments)
        removed = frozenset(self.removed_fragment_ids)
        check_fragments_exist(manifest, removed | updated.keys(), self.name)
        new, max_fragment_id = assign_fragment_ids(self.new_fragments, manifest.max_fragment_id)
        next_row_id = manifest.next_row_id
        touched = list(manifest.fragments.having(removed | updated.keys()))
        before = fragments_by_id(manifest.fragments.having((updated.keys() | self.updated_offsets.keys()) - removed))
        kept = {
            fragment_id: self._updated(fragment, updated[fragment_id]) if fragment_id in updated else fragment
            for fragment_id, fragment in before.items()
        }
        indices = manifest.indices
        if self.in_place:
            indices = remove_changed_coverage(indices, before, kept.values(), manifest.schema)
        if manifest.uses_stable_row_ids:
            moved = {fragment.id for fragment in new if _has_only_moved_rows(fragment)}
            new, next_row_id = assign_row_ids(new, next_row_id)
            new = stamp_moved_rows(touched, new, manifest.version + 1)
            kept = {
                fragment_id: stamp_rewritten_offsets(
                    fragment, self.updated_offsets.get(fragment_id), manifest.version + 1
                )
                for fragment_id, fragment in kept.items()
            }
            if not self.in_place:
                indices = self._cover_moved(indices, moved, [fragment.id for fragment in touched])
        fragments = manifest.fragments.with_changes(kept, removed, new)
        indices = drop_orphaned_indices(indices, manifest.schema, fragments)
        return replace(
            manifest, fragments=fragments, indices=indices, max_fragment_id=max_fragment_id, next_row_id=next_row_id
        )

    def _updated(self, fragment: Fragment, update: Fragment) -> Fragment:
        """Apply only what the update changed: a concurrent transaction may have changed the rest of the fragment."""
        if self.in_place:
            return replace(fragment, files=update.files)
        return with_deletion_file(fragment, update.deletion_file)

    def _cover_moved(
        self, indices: Iterable[IndexMetadata], moved: set[int], origins: Iterable[int]
    ) -> tuple[IndexMetadata, ...]:
        """Let segments of row ids cover the rows that moved from `origins` with their indexed values unchanged."""
        changed, old = frozenset(self.fields_for_preserving_frag_bitmap), BitMap(origins)

        def covering(index: IndexMetadata) -> IndexMetadata:
            covered = index.fragment_bitmap
            if (
                covered is None
                or not old <= covered
                or holds_row_addresses(index)
                or changed.intersection(index.fields)
            ):
                return index
            return replace(index, fragment_bitmap=FrozenBitMap(covered | BitMap(moved)))

        return tuple(map(covering, indices))


def _has_only_moved_rows(fragment: Fragment) -> bool:
    """Return whether every row of a new fragment has a row id already."""
    row_ids = fragment.row_ids
    return isinstance(row_ids, bytes) and count_row_ids(row_ids, f"fragment {fragment.id}") == fragment.physical_rows

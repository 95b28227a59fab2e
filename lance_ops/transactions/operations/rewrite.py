"""The operation `Rewrite`: move rows unchanged to new fragments, as compaction does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Self
from uuid import UUID

from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.errors import CorruptFile, IncompatibleTransaction, InvalidInput
from lance_ops.core.file_names import INDICES_DIR
from lance_ops.core.records import dataclass
from lance_ops.pb import table_pb2, transaction_pb2
from lance_ops.table import DataFormat, Fragment, IndexDetails, IndexFile, IndexMetadata, Manifest
from lance_ops.transactions.footprint import Footprint, remapped_coverage
from lance_ops.transactions.manifest_changes import (
    assign_fragment_ids,
    check_fragments_exist,
    holds_row_addresses,
    keeps_entries_of_deleted_rows,
)
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["Rewrite", "RewriteGroup", "RewrittenIndex"]


@dataclass(frozen=True)
class RewriteGroup:
    """Old fragments, and new ones that hold their surviving rows in the same order, with reserved ids or none.

    The old fragments are as the writer read them: the rows deleted by then are not in the new ones. Rows deleted later
    are in the deletion vectors of the new ones. A new fragment that lost all of its rows is in no version.

    A rewrite that changes the order of rows has two groups instead, one with the old fragments and after it one with
    the new ones. Nobody can then tell where a row went, so a writer with other plans for the rows plans again.
    """

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]

    @property
    def num_hidden_rows(self) -> int:
        """The number of deleted rows in the new fragments."""
        return sum(fragment.physical_rows - fragment.num_rows for fragment in self.new_fragments)


@dataclass(frozen=True, slots=True)
class RewrittenIndex:
    """A segment remapped to the new addresses: the segment `new_id` replaces `old_id`."""

    old_id: UUID
    new_id: UUID
    details: IndexDetails | None = None
    index_version: int = 0
    files: tuple[IndexFile, ...] = ()

    def paths(self) -> Iterator[str]:
        """Yield the paths of the new files."""
        return (f"{INDICES_DIR}/{self.new_id}/{file.path}" for file in self.files)

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Rewrite.RewrittenIndex, path: str) -> Self:
        """Read the wire message."""
        if len(message.old_id.uuid) != 16 or len(message.new_id.uuid) != 16:
            raise CorruptFile(path, "rewritten index", "an id that is not a UUID")
        details = message.new_index_details
        return cls(
            old_id=UUID(bytes=message.old_id.uuid),
            new_id=UUID(bytes=message.new_id.uuid),
            details=IndexDetails(details.type_url, details.value) if message.HasField("new_index_details") else None,
            index_version=message.new_index_version,
            files=tuple(map(IndexFile.from_pb, message.new_index_files)),
        )

    def to_pb(self) -> transaction_pb2.Transaction.Rewrite.RewrittenIndex:
        """Return the wire message."""
        message = transaction_pb2.Transaction.Rewrite.RewrittenIndex(
            old_id=table_pb2.UUID(uuid=self.old_id.bytes),
            new_id=table_pb2.UUID(uuid=self.new_id.bytes),
            new_index_version=self.index_version,
            new_index_files=[file.to_pb() for file in self.files],
        )
        if self.details is not None:
            message.new_index_details.type_url = self.details.type_url
            message.new_index_details.value = self.details.value
        return message


@dataclass(frozen=True)
class Rewrite(Operation):
    """Replace groups of fragments, and the index segments that were remapped with them.

    A segment that was not remapped keeps its bitmap of the old fragments, so it covers none of the new ones.
    """

    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[RewrittenIndex, ...] = ()

    wire_name = "rewrite"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.Rewrite, path: str) -> Self:
        groups = [(group.old_fragments, group.new_fragments) for group in message.groups]
        if message.old_fragments or message.new_fragments:  # written before the format had groups
            groups.append((message.old_fragments, message.new_fragments))
        return cls(
            groups=tuple(
                RewriteGroup(
                    tuple(Fragment.from_pb(fragment, path) for fragment in old),
                    tuple(Fragment.from_pb(fragment, path) for fragment in new),
                )
                for old, new in groups
            ),
            rewritten_indices=tuple(RewrittenIndex.from_pb(index, path) for index in message.rewritten_indices),
        )

    def to_pb(self) -> transaction_pb2.Transaction.Rewrite:
        return transaction_pb2.Transaction.Rewrite(
            groups=[
                transaction_pb2.Transaction.Rewrite.RewriteGroup(
                    old_fragments=[fragment.to_pb() for fragment in group.old_fragments],
                    new_fragments=[fragment.to_pb() for fragment in group.new_fragments],
                )
                for group in self.groups
            ],
            rewritten_indices=[index.to_pb() for index in self.rewritten_indices],
        )

    def footprint(self) -> Footprint:
        old = frozenset(fragment.id for group in self.groups for fragment in group.old_fragments)
        return Footprint(
            drops=old,
            rewrites=old,
            keeps_row_ids=all(
                fragment.row_ids is not None for group in self.groups for fragment in group.new_fragments
            ),
            index_ids=frozenset(index.old_id for index in self.rewritten_indices),
        )

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        old = [fragment.id for group in self.groups for fragment in group.old_fragments]
        old_ids = frozenset(old)
        if len(old_ids) != len(old):
            raise InvalidInput("a fragment is in two groups of one rewrite")
        check_fragments_exist(manifest, self._expected(manifest), self.name)
        present = BitMap(manifest.fragments.ids)
        added: list[Fragment] = []
        replaced: list[_Replaced] = []
        highest = manifest.max_fragment_id
        for group in self.groups:
            numbered, highest = assign_fragment_ids(group.new_fragments, highest)
            new = tuple(fragment for fragment in numbered if fragment.num_rows or not fragment.physical_rows)
            added += new
            read = BitMap(fragment.id for fragment in group.old_fragments)
            made = BitMap(fragment.id for fragment in new)
            absent = BitMap(each.id for each in group.old_fragments if each.num_rows < each.physical_rows)
            absent |= BitMap(each.id for each in numbered) - made
            if not read and replaced:  # the group before it has the old fragments of these rows
                before = replaced.pop()
                read, made, absent = before.read, before.new | made, before.absent | absent
            replaced.append(_Replaced(read, read & present, made, absent))
        fragments = manifest.fragments.with_changes({}, old_ids, added)
        indices = self._indices(manifest, replaced)
        data_format = manifest.data_format
        if context.data_storage_version is not None:
            data_format = DataFormat(context.data_storage_version)
        return replace(manifest, fragments=fragments, indices=indices, max_fragment_id=highest, data_format=data_format)

    def _expected(self, manifest: Manifest) -> Iterator[int]:
        """Yield the old fragments that the manifest must have: all, unless the group hides the rows of missing ones."""
        present = frozenset(manifest.fragments.ids)
        for group in self.groups:
            missing = [fragment for fragment in group.old_fragments if fragment.id not in present]
            if sum(fragment.num_rows for fragment in missing) > group.num_hidden_rows:
                yield from (fragment.id for fragment in missing)

    def _indices(self, manifest: Manifest, replaced: Sequence[_Replaced]) -> tuple[IndexMetadata, ...]:
        remapped = {index.old_id: index for index in self.rewritten_indices}
        if len(remapped) != len(self.rewritten_indices):
            raise InvalidInput("an index segment is remapped twice in one rewrite")
        missing = remapped.keys() - {index.uuid for index in manifest.indices}
        if missing:
            raise IncompatibleTransaction(f"version {manifest.version} has no index segment {min(map(str, missing))}")
        indices = []
        for index in manifest.indices:
            new = remapped.get(index.uuid)
            if new is not None:
                index = replace(
                    index,
                    uuid=new.new_id,
                    fragment_bitmap=_remapped_coverage_of(index, replaced),
                    details=new.details or index.details,
                    index_version=new.index_version,
                    base_id=None,
                    files=new.files,
                )
            elif manifest.uses_stable_row_ids and not index.is_system and index.fragment_bitmap is not None:
                index = replace(index, fragment_bitmap=_coverage_by_row_id(index, index.fragment_bitmap, replaced))
            indices.append(index)
        return tuple(indices)


class _Replaced(NamedTuple):
    """The fragments of a group of a rewrite.

    The writer read the fragments `read`. The version has `old` of them, and gets the fragments `new`. The table will
    not have the fragments `absent`, but the entries of deleted rows may name them.
    """

    read: BitMap
    old: BitMap
    new: BitMap
    absent: BitMap


def _remapped_coverage_of(index: IndexMetadata, replaced: Iterable[_Replaced]) -> FrozenBitMap:
    """Return the bitmap of a remapped segment; it must cover all old fragments of a group or none.

    If the segment keeps entries of deleted rows, the bitmap also has the fragments that these entries name.
    """
    if index.fragment_bitmap is None:
        raise InvalidInput(f"index {index.name!r} has no list of covered fragments, so it cannot be remapped")
    covered = index.fragment_bitmap
    for read, old, new, absent in replaced:
        if not (old <= covered or covered.isdisjoint(old)):
            raise InvalidInput(f"index {index.name!r} covers only some of the fragments {list(old)} of a rewrite")
        has_entries = not covered.isdisjoint(read)
        covered = remapped_coverage(covered, old, new)
        if has_entries and keeps_entries_of_deleted_rows(index):
            covered = covered | absent
    return covered


def _coverage_by_row_id(index: IndexMetadata, bitmap: FrozenBitMap, replaced: Iterable[_Replaced]) -> FrozenBitMap:
    """Return what a segment covers in a table of stable row ids: new fragments too, if it has the ids of all rows."""
    has_row_ids = not holds_row_addresses(index)
    for group in replaced:
        bitmap = remapped_coverage(bitmap, group.old, group.new if has_row_ids else ())
    return bitmap

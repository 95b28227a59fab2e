"""The fragments of a version as a sequence that decodes a fragment when it is first used.

A table can have a hundred thousand fragments, and most commits change a few. So each fragment stays an encoded message
until it is accessed, and the next manifest takes over the messages unchanged.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from itertools import pairwise
from operator import gt
from typing import NamedTuple, overload

import numpy as np

from lance_ops.core.errors import CorruptFile
from lance_ops.core.ndarrays import Int64Array
from lance_ops.pb import table_pb2
from lance_ops.pb.manifest_parts_pb2 import FragmentHead, ManifestParts, ManifestSummary
from lance_ops.table.fragments.fragment import Fragment
from lance_ops.table.fragments.fragment_files import FragmentFiles, files_named_in
from lance_ops.table.fragments.fragment_heads import FragmentHeads, heads_of
from lance_ops.wire import parse_message

__all__ = ["FragmentChanges", "FragmentList", "FragmentTotals", "FragmentsById"]


class FragmentChanges(NamedTuple):
    """The changes since an earlier list: `new` fragments in order, and whether earlier ones are gone.

    `grew` means that the list begins with all earlier fragments unchanged, followed by the new ones.
    """

    new: list[Fragment]
    some_are_gone: bool
    grew: bool

    def ids_ascend_above(self, highest_id: int) -> bool:
        """Return whether the list only grew, by ascending ids above `highest_id`, which bounds the earlier ids."""
        return self.grew and all(
            first < second for first, second in pairwise([highest_id, *(new.id for new in self.new)])
        )


class FragmentTotals(NamedTuple):
    """Sums over the fragments, as far as the manifest states them; deleted rows count among the physical rows."""

    physical_rows: int
    data_files: int
    data_file_bytes: int
    deleted_rows: int
    deletion_files: int

    @classmethod
    def from_pb(cls, message: ManifestSummary) -> FragmentTotals:
        """Add up what a manifest states of its fragments."""
        physical_rows = data_files = data_file_bytes = deleted_rows = deletion_files = 0
        for fragment in message.fragments:
            physical_rows += fragment.physical_rows
            files = fragment.files
            data_files += len(files)
            for file in files:
                data_file_bytes += file.file_size_bytes
            if fragment.HasField("deletion_file"):
                deletion_files += 1
                deleted_rows += fragment.deletion_file.num_deleted_rows
        return cls(physical_rows, data_files, data_file_bytes, deleted_rows, deletion_files)


class FragmentList(Sequence[Fragment]):
    """An immutable sequence, equal to any sequence of equal fragments.

    Accessing a fragment raises as `Fragment.from_pb` does.
    """

    __slots__ = (
        "__weakref__", "_changes", "_decoded", "_ids", "_items", "_messages", "_path", "_read_heads", "_section",
    )  # fmt: skip

    def __init__(self, fragments: Iterable[Fragment] = ()) -> None:
        self._items: list[bytes | Fragment] = list(fragments)
        self._path = ""
        self._decoded: dict[int, Fragment] = {}
        self._read_heads: FragmentHeads | None = None
        self._ids: list[int] | None = None
        self._messages: list[bytes] | None = None
        self._section: bytes | None = None
        self._changes: tuple[weakref.ref[FragmentList], FragmentChanges] | None = None

    @classmethod
    def of(cls, fragments: Sequence[Fragment]) -> FragmentList:
        """Return the fragments as a `FragmentList`."""
        return fragments if isinstance(fragments, FragmentList) else cls(fragments)

    @classmethod
    def from_messages(cls, messages: Iterable[bytes], path: str) -> FragmentList:
        """Return the fragments that these messages encode; `path` names the manifest in errors."""
        encoded = list(messages)
        made = cls._made([*encoded], path)
        made._messages = encoded
        return made

    def to_messages(self) -> list[bytes]:
        """Return every fragment's encoded message, unchanged if it was read as one. Do not change the list."""
        if self._messages is None:
            self._messages = [item if isinstance(item, bytes) else _encoded(item) for item in self._items]
        return self._messages

    @property
    def section(self) -> bytes:
        """The fragments as they stand in a manifest's bytes: their messages, framed one after the other.

        The section is cached; `with_added` extends it.
        """
        if self._section is None:
            self._section = _section_of(self.to_messages())
        return self._section

    def as_read_from(self, path: str) -> FragmentList:
        """Return the list as it is after these fragments are written to a manifest at `path` and read again."""
        made = self.from_messages(self.to_messages(), path)
        made._section = self._section
        return made

    @property
    def ids(self) -> list[int]:
        """The fragments' ids, in order; decodes no fragment. Do not change the list."""
        if self._ids is None:
            decoded_ids = [item.id for item in self._items if not isinstance(item, bytes)]
            all_are_decoded = len(decoded_ids) == len(self._items)
            self._ids = decoded_ids if all_are_decoded else self._heads.ids
        return self._ids

    @property
    def last_id(self) -> int | None:
        """The id of the last fragment, None if there is no fragment; decodes nothing else."""
        if not self._items:
            return None
        last = self._items[-1]
        return parse_message(FragmentHead, last, self._path, "fragment").id if isinstance(last, bytes) else last.id

    def having(self, ids: Collection[int]) -> Iterator[Fragment]:
        """Yield the fragments with these ids, in order; decode no other."""
        if ids:
            for at, fragment_id in enumerate(self.ids):
                if fragment_id in ids:
                    yield self[at]

    def totals(self) -> FragmentTotals:
        """Return what the fragments have together; decodes no fragment."""
        return FragmentTotals.from_pb(parse_message(ManifestSummary, self.section, self._path, "fragments"))

    @property
    def num_rows(self) -> int:
        """The number of rows that are not deleted, as far as the manifest states it; decodes no fragment."""
        _, physical, deleted = self._heads
        return sum(physical) - sum(deleted.values())

    def check_row_counts(self) -> None:
        """Raise `CorruptFile` if a fragment states more deleted rows than rows; decodes no fragment."""
        _, physical, deleted = self._heads
        if any(map(gt, deleted.values(), map(physical.__getitem__, deleted))):
            at = next(at for at, rows in deleted.items() if rows > physical[at])
            reason = f"{deleted[at]} of {physical[at]} rows are deleted"
            raise CorruptFile(self._path, f"fragment {self.ids[at]}", reason)

    def live_row_counts(self) -> Int64Array:
        """Return each fragment's number of rows that are not deleted; decode no fragment.

        Every fragment must state its rows (`state_their_rows`). Raises `CorruptFile` as `check_row_counts` does.
        """
        self.check_row_counts()
        _, physical, deleted = self._heads
        live = np.array(physical, np.int64)
        live[[*deleted]] -= np.array([*deleted.values()], np.int64)
        return live

    @property
    def state_their_rows(self) -> bool:
        """Whether every fragment states its number of physical rows and of deleted rows."""
        _, physical, deleted = self._heads
        return all(physical) and all(deleted.values())

    @property
    def have_deletions(self) -> bool:
        """Whether any fragment has a deletion file."""
        return bool(self._heads.deleted_rows)

    def with_changes(
        self, changed: Mapping[int, Fragment], removed: Collection[int] = (), added: Sequence[Fragment] = ()
    ) -> FragmentList:
        """Return the list with some fragments replaced, by id, some removed, and some appended."""
        if not (changed or removed):
            return self.with_added(added)
        gone = frozenset(removed)
        pairs = zip(self.ids, self._items, strict=True)
        kept = [changed.get(fragment_id, item) for fragment_id, item in pairs if fragment_id not in gone]
        return self._made([*kept, *added], self._path)

    def with_added(self, added: Sequence[Fragment]) -> FragmentList:
        """Return the list with fragments appended."""
        if not added:
            return self
        made = self._made([*self._items, *added], self._path)
        if self._messages is not None:
            encoded = [*map(_encoded, added)]
            made._messages = [*self._messages, *encoded]
            if self._section is not None:
                made._section = self._section + _section_of(encoded)
        return made

    def in_order(self) -> FragmentList:
        """Return the list sorted by id."""
        ids = self.ids
        if all(first <= second for first, second in pairwise(ids)):
            return self
        return self._made([self._items[at] for at in sorted(range(len(ids)), key=ids.__getitem__)], self._path)

    def rebased_under(self, base_id: int) -> FragmentList:
        """Return the list for another table's manifest, in which this table's root is the base path `base_id`."""
        rebased: list[bytes | Fragment] = []
        for encoded in self.to_messages():
            message = parse_message(table_pb2.DataFragment, encoded, self._path, "fragment")
            for file in message.files:
                if not file.HasField("base_id"):
                    file.base_id = base_id
            if message.HasField("deletion_file") and not message.deletion_file.HasField("base_id"):
                message.deletion_file.base_id = base_id
            rebased.append(message.SerializeToString(deterministic=True))
        return self._made(rebased, self._path)

    def changes_since(self, before: FragmentList) -> FragmentChanges:
        """Return the changes since `before`; a changed fragment counts as a new one.

        A commit asks several times, so the last answer is kept. Do not change its list.
        """
        known = self._changes
        if known is not None and known[0]() is before:
            return known[1]
        positions, grew = self._new_positions(before)
        new = [self[at] for at in positions]
        changes = FragmentChanges(new, some_are_gone=len(self) - len(new) < len(before), grew=grew)
        self._changes = weakref.ref(before), changes
        return changes

    def files_since(self, before: FragmentList) -> FragmentFiles:
        """Return the files that fragments name which are new or changed since `before`; decode no fragment.

        Raises as accessing these fragments does.
        """
        positions, _ = self._new_positions(before)
        if not positions:
            return FragmentFiles([], [], [])
        messages = self.to_messages()
        return files_named_in([messages[at] for at in positions], self._path)

    def _new_positions(self, before: FragmentList) -> tuple[Sequence[int], bool]:
        """Return where fragments stand that are new or changed since `before`, and whether the list only grew."""
        first = len(before)
        if self._items[:first] == before._items:  # identical objects compare equal without a look inside
            return range(first, len(self)), True
        if self._items == before._items[: len(self)]:  # a version from before some appends
            return (), False
        earlier = set(before._items)
        return [at for at, item in enumerate(self._items) if item not in earlier], False

    @classmethod
    def _made(cls, items: list[bytes | Fragment], path: str) -> FragmentList:
        made = cls()
        made._items = items
        made._path = path
        return made

    @property
    def _heads(self) -> FragmentHeads:
        if self._read_heads is None:
            self._read_heads = heads_of(self.to_messages(), self._path)
        return self._read_heads

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Fragment]:
        return map(self.__getitem__, range(len(self._items)))

    @overload
    def __getitem__(self, index: int) -> Fragment: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Fragment, ...]: ...

    def __getitem__(self, index: int | slice) -> Fragment | tuple[Fragment, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(len(self))[index])
        item = self._items[index]
        if not isinstance(item, bytes):
            return item
        at = index % len(self._items)
        found = self._decoded.get(at)
        if found is None:
            message = parse_message(table_pb2.DataFragment, item, self._path, "fragment")
            found = self._decoded[at] = Fragment.from_pb(message, self._path)
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[object, tuple[tuple[Fragment, ...]]]:
        return FragmentList, (tuple(self),)


class FragmentsById(Mapping[int, Fragment]):
    """The fragments of a sequence by id; a `FragmentList` decodes a fragment when it is first looked up."""

    def __init__(self, fragments: Sequence[Fragment]) -> None:
        self._fragments = fragments
        ids = fragments.ids if isinstance(fragments, FragmentList) else [fragment.id for fragment in fragments]
        self._positions = {fragment_id: at for at, fragment_id in enumerate(ids)}

    def __getitem__(self, fragment_id: int) -> Fragment:
        return self._fragments[self._positions[fragment_id]]

    def __contains__(self, fragment_id: object) -> bool:
        return fragment_id in self._positions

    def __iter__(self) -> Iterator[int]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def keys(self) -> KeysView[int]:
        return self._positions.keys()


def _section_of(messages: list[bytes]) -> bytes:
    return ManifestParts(fragments=messages).SerializeToString()


def _encoded(fragment: Fragment) -> bytes:
    return fragment.to_pb().SerializeToString(deterministic=True)

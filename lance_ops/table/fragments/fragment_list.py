"""The fragments of a version: a sequence that decodes what is touched and keeps the bytes of what is not.

A table can have a hundred thousand fragments, and most commits change a few. So a manifest's fragments stay the
messages they are on the wire until somebody asks for one, and go as these messages into the next manifest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, overload

from lance_ops.pb import table_pb2
from lance_ops.pb.manifest_parts_pb2 import FragmentHead, ManifestHeads, ManifestParts
from lance_ops.table.fragments.fragment import Fragment
from lance_ops.wire import parse_message

__all__ = ["FragmentChanges", "FragmentList"]


class FragmentChanges(NamedTuple):
    """What became of an earlier version's fragments: `new` ones came, in this order, and some may be gone.

    `grew` says that the earlier ones are all there, as they were, and the new ones behind them.
    """

    new: list[Fragment]
    some_are_gone: bool
    grew: bool

    def counted_on_from(self, highest_id: int) -> bool:
        """Return whether they only grew, and by ascending ids above one that bounds those of the earlier ones."""
        return self.grew and all(one < other for one, other in pairwise([highest_id, *(new.id for new in self.new)]))


class FragmentList(Sequence[Fragment]):
    """Immutable, and equal to any sequence of the same fragments.

    Touching a fragment raises what `Fragment.from_pb` does.
    """

    __slots__ = ("_decoded", "_heads", "_items", "_messages", "_path", "_section")

    def __init__(self, fragments: Iterable[Fragment] = ()) -> None:
        self._items: list[bytes | Fragment] = list(fragments)
        self._path = ""
        self._decoded: dict[int, Fragment] = {}
        self._heads: list[FragmentHead] | None = None
        self._messages: list[bytes] | None = None
        self._section: bytes | None = None

    @classmethod
    def of(cls, fragments: Sequence[Fragment]) -> FragmentList:
        """Return the fragments as such a sequence."""
        return fragments if isinstance(fragments, FragmentList) else cls(fragments)

    @classmethod
    def from_messages(cls, messages: Iterable[bytes], path: str) -> FragmentList:
        """Return the fragments that these messages are; `path` names the manifest in errors."""
        known = list(messages)
        made = cls._made([*known], path)
        made._messages = known
        return made

    def to_messages(self) -> list[bytes]:
        """Return every fragment's message: the bytes it came as, if it came so. Do not change the list."""
        if self._messages is None:
            self._messages = [item if isinstance(item, bytes) else _encoded(item) for item in self._items]
        return self._messages

    @property
    def section(self) -> bytes:
        """The fragments as a manifest's bytes state them: their messages, framed one behind the other.

        It is kept, and what is added to these is framed behind it.
        """
        if self._section is None:
            self._section = _section_of(self.to_messages())
        return self._section

    def as_read_from(self, path: str) -> FragmentList:
        """Return what a manifest of these, written to `path`, says when it is read."""
        made = self.from_messages(self.to_messages(), path)
        made._section = self._section
        return made

    @property
    def ids(self) -> list[int]:
        """The fragments' ids, in order, without decoding more."""
        known = [item.id for item in self._items if not isinstance(item, bytes)]
        return known if len(known) == len(self._items) else [head.id for head in self._all_heads()]

    def having(self, ids: Collection[int]) -> Iterator[Fragment]:
        """Yield the fragments of these ids, in order, and decode no other."""
        if ids:
            for at, fragment_id in enumerate(self.ids):
                if fragment_id in ids:
                    yield self[at]

    @property
    def num_rows(self) -> int:
        """Rows that are not deleted, as far as the manifest says, without decoding more."""
        heads = self._all_heads()
        deleted = sum(head.deletion_file.num_deleted_rows for head in heads if head.HasField("deletion_file"))
        return sum(head.physical_rows for head in heads) - deleted

    @property
    def say_their_rows(self) -> bool:
        """Whether every fragment says how many physical rows it has, and how many of them are deleted."""
        return all(
            head.physical_rows and (not head.HasField("deletion_file") or head.deletion_file.num_deleted_rows)
            for head in self._all_heads()
        )

    @property
    def have_deletions(self) -> bool:
        """Whether any fragment has a deletion file."""
        return any(head.HasField("deletion_file") for head in self._all_heads())

    def with_changes(
        self, changed: Mapping[int, Fragment], removed: Collection[int] = (), added: Sequence[Fragment] = ()
    ) -> FragmentList:
        """Return these with some exchanged, by id, some left out, and others behind them."""
        if not (changed or removed):
            return self.with_added(added)
        gone = frozenset(removed)
        pairs = zip(self.ids, self._items, strict=True)
        kept = [changed.get(fragment_id, item) for fragment_id, item in pairs if fragment_id not in gone]
        return self._made([*kept, *added], self._path)

    def with_added(self, added: Sequence[Fragment]) -> FragmentList:
        """Return these and others behind them."""
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
        """Return these by ascending id."""
        ids = self.ids
        if all(one <= other for one, other in pairwise(ids)):
            return self
        return self._made([self._items[at] for at in sorted(range(len(ids)), key=ids.__getitem__)], self._path)

    def seen_from_elsewhere(self, base_id: int) -> FragmentList:
        """Return these as a table elsewhere names them, for which their own root is the base path of that id."""
        moved: list[bytes | Fragment] = []
        for encoded in self.to_messages():
            message = parse_message(table_pb2.DataFragment, encoded, self._path, "fragment")
            for file in message.files:
                if not file.HasField("base_id"):
                    file.base_id = base_id
            if message.HasField("deletion_file") and not message.deletion_file.HasField("base_id"):
                message.deletion_file.base_id = base_id
            moved.append(message.SerializeToString(deterministic=True))
        return self._made(moved, self._path)

    def since(self, before: FragmentList) -> FragmentChanges:
        """Return what became of the fragments of `before`; one that was changed is a new one."""
        first = len(before)
        if self._items[:first] == before._items:  # the same objects are equal without being looked at
            return FragmentChanges([self[at] for at in range(first, len(self))], some_are_gone=False, grew=True)
        known = set(before._items)
        new = [self[at] for at, item in enumerate(self._items) if item not in known]
        return FragmentChanges(new, some_are_gone=len(self) - len(new) < first, grew=False)

    @classmethod
    def _made(cls, items: list[bytes | Fragment], path: str) -> FragmentList:
        made = cls()
        made._items = items
        made._path = path
        return made

    def _all_heads(self) -> list[FragmentHead]:
        if self._heads is None:
            self._heads = list(parse_message(ManifestHeads, self.section, self._path, "fragments").fragments)
        return self._heads

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Fragment]:
        return map(self.__getitem__, range(len(self._items)))

    @overload
    def __getitem__(self, place: int) -> Fragment: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Fragment, ...]: ...

    def __getitem__(self, place: int | slice) -> Fragment | tuple[Fragment, ...]:
        if isinstance(place, slice):
            return tuple(self[at] for at in range(len(self))[place])
        item = self._items[place]
        if not isinstance(item, bytes):
            return item
        at = place % len(self._items)
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


def _section_of(messages: list[bytes]) -> bytes:
    return ManifestParts(fragments=messages).SerializeToString()


def _encoded(fragment: Fragment) -> bytes:
    return fragment.to_pb().SerializeToString(deterministic=True)

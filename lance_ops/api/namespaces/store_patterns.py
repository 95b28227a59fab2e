"""Find the folders of a store whose paths match a pattern, with few listings.

    s3://bucket/lake/*/tables/*.lance     in one part of a path, `*`, `?` and `[…]` are as in `fnmatch`
    s3://bucket/lake/**/*.lance           the part `**` is any number of parts

A folder is listed only to match a part with a wildcard, and its listing names what is directly in it. As in `glob`, a
name that begins with a dot matches only a part that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from glob import has_magic
from typing import TypeVar

from lance_ops.core.errors import InvalidInput
from lance_ops.core.file_names import VERSIONS_DIR
from lance_ops.core.threads import map_ordered
from lance_ops.store import Store

__all__ = ["StorePattern", "ask_side_by_side"]

T = TypeVar("T")

_ANY_DEPTH = "**"
_AT_ONCE = 16  # requests


class StorePattern:
    """A pattern of URIs, of which at least one part has a wildcard.

    `root` is the URI of the folder before that part. Other paths are relative to it.
    """

    def __init__(self, pattern: str) -> None:
        scheme, _, rest = pattern.partition("://")
        authority, *parts = filter(None, rest.split("/"))
        if has_magic(authority):
            raise InvalidInput(f"{pattern}: name the bucket in full; wildcards are for the folders in it")
        num_literal = next(index for index, part in enumerate(parts) if has_magic(part))
        self.root = "/".join([f"{scheme}://{authority}", *parts[:num_literal]])
        *self._above, self._last = parts[num_literal:]
        if self._last == _ANY_DEPTH:
            self._above, self._last = [*self._above, _ANY_DEPTH], "*"

    def folders(self, store: Store, names: Iterable[str] | None = None) -> list[str]:
        """Return the paths of the folders that match in the store of `root`.

        `names` limits them to those with one of these last parts. With `names`, or if no wildcard stands in the last
        part, a folder that is returned may not exist.
        """
        listing = _Listing(store)
        found = [""]
        for part in self._above:
            found = listing.at_any_depth(found) if part == _ANY_DEPTH else listing.matching(found, part)
        if names is None:
            found = listing.matching(found, self._last)
        else:
            matching = [name for name in names if "/" not in name and _matches(name, self._last)]
            found = [f"{folder}{name}/" for folder in found for name in matching]
        return [folder[:-1] for folder in found]


class _Listing:
    """Lists folders, each once. The path of a folder ends with a slash here, and the root's is empty."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names: dict[str, Sequence[str]] = {}

    def matching(self, folders: Sequence[str], part: str) -> list[str]:
        """Return the folders directly in these ones whose names match one part of a pattern."""
        if not has_magic(part):
            return [f"{folder}{part}/" for folder in folders]
        return [path for path in self._within(folders) if _matches(path.split("/")[-2], part)]

    def at_any_depth(self, folders: Sequence[str]) -> list[str]:
        """Return these folders and all beneath them, but datasets and what is in them."""
        found: list[str] = []
        level = [*folders]
        while level:
            self._list(level)
            level = [folder for folder in level if VERSIONS_DIR not in self._names[folder]]
            found += level
            level = [path for path in self._within(level) if _matches(path.split("/")[-2], "*")]
        return found

    def _within(self, folders: Sequence[str]) -> list[str]:
        self._list(folders)
        return [f"{folder}{name}/" for folder in folders for name in sorted(self._names[folder])]

    def _list(self, folders: Sequence[str]) -> None:
        new = [folder for folder in folders if folder not in self._names]
        self._names.update(zip(new, ask_side_by_side(self._store.list_folders, new), strict=True))


def ask_side_by_side(question: Callable[[str], T], folders: Sequence[str]) -> list[T]:
    """Return the answer of a store to a question about each folder."""
    return list(map_ordered(question, folders, min(_AT_ONCE, len(folders)), _AT_ONCE))


def _matches(name: str, part: str) -> bool:
    return fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))

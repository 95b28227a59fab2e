"""List objects through obstore: page by page, and the directories of a long listing side by side.

A server lists 1,000 objects at once, and says where the next page begins only when it answers. So a long listing takes
as many round trips as it has pages, unless it is cut into directories.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import Any

from lance_ops.core.threads import map_ordered
from lance_ops.store.services.obstore.directory_marks import Listed, objects_of
from lance_ops.store.services.obstore.errors import translating

__all__ = ["list_beneath", "list_directly", "list_folders", "list_in_order", "tag_of"]

_PAGE_NAMES = 1000
_AT_ONCE = 16
"""A long listing takes a sixteenth of its round trips, and leaves connections to other requests."""
_PAGES_AHEAD = 20
"""How many pages of a directory are held before its turn comes. They take some 10 MB, however large the bucket is."""
_FEW_DIRECTORIES = 4
"""A listing is cut if its first page has no more directories. With more, most directories would not fill a page."""
_FEW_NAMES = _PAGE_NAMES // _FEW_DIRECTORIES


def list_in_order(fs: Any, prefix: str) -> Iterator[Listed]:
    """Yield the objects beneath a directory of a server that lists them in ascending order.

    A long listing is cut into directories, which are listed side by side, at most `_PAGES_AHEAD` pages of each before
    its turn comes. It is listed page by page where directories are small.
    """
    pages = _pages(fs, prefix, None, _PAGE_NAMES)
    first = next(pages, [])
    yield from objects_of(fs, first, prefix)
    start = len(prefix) + 1 if prefix else 0
    names = [listed["path"][start:] for listed in first]
    directories = {name.partition("/")[0] for name in names if "/" in name}
    if len(names) < _PAGE_NAMES or not 0 < len(directories) <= _FEW_DIRECTORIES or names != sorted(names):
        yield from chain.from_iterable(objects_of(fs, page, prefix) for page in pages)
    else:
        yield from _list_by_directories(fs, prefix, first[-1]["path"])


def list_beneath(fs: Any, prefix: str, after: str | None = None, *, chunk: int = _PAGE_NAMES) -> Iterator[Listed]:
    """Yield the objects beneath a directory, in the order of the server, from those after a path on."""
    return chain.from_iterable(objects_of(fs, page, prefix) for page in _pages(fs, prefix, after, chunk))


def list_directly(fs: Any, prefix: str) -> list[Listed]:
    """Return the objects directly in a directory."""
    with translating():
        found = fs.list_with_delimiter(prefix or None)["objects"]
    return objects_of(fs, found, prefix)


def list_folders(fs: Any, prefix: str) -> list[str]:
    """Return the names of the directories directly in a directory, ascending."""
    with translating():
        found = fs.list_with_delimiter(prefix or None)["common_prefixes"]
    return sorted(path.rpartition("/")[2] for path in found)


def tag_of(listed: Listed) -> str | None:
    """Return an object's entity tag, if the listing states it."""
    return (listed["e_tag"] or "").strip('"') or None


def _list_by_directories(fs: Any, prefix: str, after: str) -> Iterator[Listed]:
    """Yield the objects beneath a directory after a path: each directory in it is listed by itself, several at once."""
    with translating():
        found = fs.list_with_delimiter(prefix or None)
    direct = {each["path"]: each for each in objects_of(fs, _from(found["objects"], after), prefix)}
    beyond = {f"{each}/" for each in found["common_prefixes"] if f"{each}/" > after or after.startswith(f"{each}/")}
    if not direct and len(beyond) == 1:
        yield from _list_by_directories(fs, beyond.pop()[:-1], after)
        return
    begin = partial(_begin_directory, fs, after)
    sizes = deque([_PAGE_NAMES] * _AT_ONCE, _AT_ONCE)
    with closing(map_ordered(begin, sorted(beyond), _AT_ONCE, _AT_ONCE)) as begun:
        for path in sorted([*direct, *beyond]):
            if path in direct:
                yield direct[path]
                after = path
                continue
            first, others = next(begun)
            for each in chain(first, chain.from_iterable(objects_of(fs, page, prefix) for page in others)):
                yield each
                after = each["path"]
            sizes.append(len(first))
            if sum(sizes) < _FEW_NAMES * len(sizes):
                break
        else:
            return
    yield from list_beneath(fs, prefix, after)


def _begin_directory(fs: Any, after: str, path: str) -> tuple[list[Listed], Iterator[Sequence[Listed]]]:
    """Return the objects after a path on the first pages of a directory `path/`, and its other pages, unread."""
    directory = path[:-1]
    pages = _pages(fs, directory, after if after.startswith(path) else None, _PAGE_NAMES)
    first = chain.from_iterable(islice(pages, _PAGES_AHEAD))
    return objects_of(fs, first, directory), pages


def _pages(fs: Any, prefix: str, after: str | None, chunk: int) -> Iterator[Sequence[Listed]]:
    with translating():
        chunks = iter(fs.list(prefix or None, offset=after, chunk_size=chunk))
    while True:
        with translating():
            found = next(chunks, None)
        if found is None:
            return
        yield found if after is None else _from(found, after)


def _from(found: Iterable[Listed], after: str) -> list[Listed]:
    """Leave out what is not after a path: a server may ignore where a listing should begin."""
    return [each for each in found if each["path"] > after]

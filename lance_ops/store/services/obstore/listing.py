"""List objects through obstore: page by page, and the directories of a long listing side by side.

A server lists 1,000 objects at once, and says where the next page begins only when it answers. So a long listing takes
as many round trips as it has pages, unless it is cut into directories.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Any

from lance_ops.store.services.obstore.directory_marks import Listed, objects_of
from lance_ops.store.services.obstore.errors import translating

__all__ = ["list_beneath", "list_directly", "list_in_order", "tag_of"]

_PAGE_NAMES = 1000
_AT_ONCE = 16
_FEW_DIRECTORIES = 4
_FEW_NAMES = _PAGE_NAMES // _FEW_DIRECTORIES


def list_in_order(fs: Any, prefix: str) -> Iterator[Listed]:
    """Yield the objects beneath a directory of a server that lists them ascending, as long listings are cheapest.

    They are cut into directories where the first page has few of these, so that most of them fill a page too. The rest
    is listed page by page where directories turn out to be small.
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


def tag_of(listed: Listed) -> str | None:
    """Return an object's entity tag, if the listing states it."""
    return (listed["e_tag"] or "").strip('"') or None


def _list_by_directories(fs: Any, prefix: str, after: str) -> Iterator[Listed]:
    """Yield the objects beneath a directory after a path: each directory in it is listed by itself, several at once."""
    with translating():
        found = fs.list_with_delimiter(prefix or None)
    direct = {listed["path"]: listed for listed in objects_of(fs, found["objects"], prefix) if listed["path"] > after}
    beyond = {f"{each}/" for each in found["common_prefixes"] if f"{each}/" > after or after.startswith(f"{each}/")}
    if not direct and len(beyond) == 1:
        yield from _list_by_directories(fs, beyond.pop()[:-1], after)
        return
    ahead = iter(sorted(beyond))
    listings: dict[str, Future[list[Listed]]] = {}
    sizes = deque([_PAGE_NAMES] * _AT_ONCE, _AT_ONCE)
    pool = ThreadPoolExecutor(_AT_ONCE, "lance-ops-list")
    try:
        for path in sorted([*direct, *beyond]):
            if path in direct:
                yield direct[path]
                after = path
                continue
            for each in islice(ahead, 2 * _AT_ONCE - len(listings)):
                listings[each] = pool.submit(_list_whole, fs, each[:-1], after)
            found = listings.pop(path).result()
            yield from found
            after = found[-1]["path"] if found else after
            sizes.append(len(found))
            if sum(sizes) < _FEW_NAMES * len(sizes):
                break
        else:
            return
    finally:
        pool.shutdown(cancel_futures=True)
    yield from list_beneath(fs, prefix, after)


def _list_whole(fs: Any, prefix: str, after: str) -> list[Listed]:
    return list(list_beneath(fs, prefix, after if after.startswith(f"{prefix}/") else None))


def _pages(fs: Any, prefix: str, after: str | None, chunk: int) -> Iterator[Sequence[Listed]]:
    with translating():
        chunks = iter(fs.list(prefix or None, offset=after, chunk_size=chunk))
    while True:
        with translating():
            found = next(chunks, None)
        if found is None:
            return
        yield found

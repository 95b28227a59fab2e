"""List objects through obstore: page by page, and the directories of a long listing side by side.

A server lists 1,000 objects at once, and says where the next page begins only when it answers. So a long listing takes
as many round trips as it has pages, unless it is cut into directories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

from lance_ops.store.services.obstore.errors import translating

__all__ = ["Listed", "is_object", "list_beneath", "list_directly", "list_in_order", "tag_of"]

Listed: TypeAlias = Mapping[str, Any]
"""What obstore states of an object: `path`, `size`, `last_modified` and `e_tag`."""

_PAGE_NAMES = 1000
_AT_ONCE = 16
_FEW_DIRECTORIES = 4
_path_of = itemgetter("path")


def list_in_order(fs: Any, prefix: str) -> Iterator[Listed]:
    """Yield the objects beneath a directory of a server that lists them ascending, as long listings are cheapest.

    They are cut into directories where the first page has few of these, so that most of them fill a page too.
    """
    pages = _pages(fs, prefix, None, _PAGE_NAMES)
    first = next(pages, [])
    yield from _objects_of(fs, first, prefix)
    start = len(prefix) + 1 if prefix else 0
    names = [listed["path"][start:] for listed in first]
    directories = {name.partition("/")[0] for name in names if "/" in name}
    if len(names) < _PAGE_NAMES or not 0 < len(directories) <= _FEW_DIRECTORIES or names != sorted(names):
        yield from chain.from_iterable(_objects_of(fs, page, prefix) for page in pages)
    else:
        yield from _list_by_directories(fs, prefix, first[-1]["path"])


def list_beneath(fs: Any, prefix: str, after: str | None = None, *, chunk: int = _PAGE_NAMES) -> Iterator[Listed]:
    """Yield the objects beneath a directory, in the order of the server, from those after a path on."""
    return chain.from_iterable(_objects_of(fs, page, prefix) for page in _pages(fs, prefix, after, chunk))


def list_directly(fs: Any, prefix: str) -> list[Listed]:
    """Return the objects directly in a directory."""
    with translating():
        found = fs.list_with_delimiter(prefix or None)["objects"]
    return _objects_of(fs, found, prefix)


def tag_of(listed: Listed) -> str | None:
    """Return an object's entity tag, if the listing states it."""
    return (listed["e_tag"] or "").strip('"') or None


def is_object(fs: Any, name: str) -> bool:
    """Return whether an empty object exists under exactly this name and does not represent a directory."""
    try:
        with translating():
            marks = fs.get(name).attributes
    except FileNotFoundError:
        return False
    return not any(marks.get(mark) == "true" for mark in ("hdi_isfolder", "is_directory"))


def _list_by_directories(fs: Any, prefix: str, after: str) -> Iterator[Listed]:
    """Yield the objects beneath a directory after a path: each directory in it is listed by itself, several at once."""
    with translating():
        found = fs.list_with_delimiter(prefix or None)
    direct = {listed["path"]: listed for listed in _objects_of(fs, found["objects"], prefix) if listed["path"] > after}
    beyond = {f"{each}/" for each in found["common_prefixes"] if f"{each}/" > after or after.startswith(f"{each}/")}
    if not direct and len(beyond) == 1:
        yield from _list_by_directories(fs, beyond.pop()[:-1], after)
        return
    pool = ThreadPoolExecutor(_AT_ONCE, "lance-ops-list")
    try:
        listings = {each: pool.submit(_list_whole, fs, each[:-1], after) for each in sorted(beyond)}
        for path in sorted([*direct, *listings]):
            if path in direct:
                yield direct[path]
            else:
                yield from listings.pop(path).result()
    finally:
        pool.shutdown(cancel_futures=True)


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


def _objects_of(fs: Any, page: Iterable[Listed], prefix: str) -> list[Listed]:
    """Return what is listed without the marks of directories.

    obstore lists the mark `name/` as `name`, so each empty object is looked at, several at once.
    """
    listed = list(page)
    empty = [path for path in map(_path_of, (each for each in listed if not each["size"])) if path != prefix]
    if len(empty) > 1:
        with ThreadPoolExecutor(min(len(empty), _AT_ONCE), "lance-ops-list") as pool:
            found = pool.map(is_object, [fs] * len(empty), empty)
            objects = {path for path, is_there in zip(empty, found, strict=True) if is_there}
    else:
        objects = {path for path in empty if is_object(fs, path)}
    return [each for each in listed if each["size"] or each["path"] in objects]

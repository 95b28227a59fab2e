"""Find the batches that lack a file because it, or a folder that may hold it, is set aside.

Such a batch is not complete, whatever its other files are: it would be ingested without rows that belong to it, or
would replace the rows in the table by fewer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from lance_ops.dagster.landing.landing_entries import LandedFile, SetAside

__all__ = ["batches_that_lack_files", "without_repeated_links"]

_WORD = re.compile(r"[^\W_]+")


def batches_that_lack_files(
    set_aside: Iterable[SetAside],
    batches: Mapping[str, Sequence[LandedFile]],
    keys_of: Callable[[Sequence[str]], Sequence[str | None]],
    matches: Callable[[str], bool],
    *,
    have_own_folders: bool,
) -> dict[str, str]:
    """Return the keys of batches that lack a file or may lack one, each with the reason.

    `keys_of` returns the keys of the batches to which files with such paths belong, and `matches` says whether the
    files count. Nobody knows which files a set-aside folder holds. A batch may lack one if the path of a file of it
    has the batch's key also with this folder in place of its leading folders. If keys are made of whole paths or of
    whole folders, batches `have_own_folders`, and no other folder holds a file of theirs.

    The work grows with the number of folders times the number of different places. It does not grow with the files:
    one file stands for those of a batch whose places differ only in letters and digits of their names.
    """
    files = [entry for entry in set_aside if not entry.is_folder]
    folders = [entry for entry in set_aside if entry.is_folder]
    lacking: dict[str, str] = {}
    for file, key in zip(files, keys_of([_text(file.path) for file in files]), strict=True):
        if key is not None and key in batches:
            lacking.setdefault(key, f"it lacks {file.name}, which is set aside: {file.reason}")
    places: dict[int, dict[str, set[str]]] = {}
    for folder in () if have_own_folders else folders:
        path = _text(folder.path)
        depth = path.count("/") + 1
        if depth not in places:
            places[depth] = _places(batches, depth)
        owners = places[depth]
        reason = f"files of it may be in {folder.name}, which is set aside: {folder.reason}"
        moved = {f"{path}/{place}": keys for place, keys in owners.items() if not keys <= lacking.keys()}
        own = [place for place in moved if matches(place)]
        for place, key in zip(own, keys_of(own), strict=True):
            if key is not None and key in moved[place]:
                lacking.setdefault(key, reason)
    return lacking


def without_repeated_links(
    set_aside: Sequence[SetAside],
    listed: Iterable[str],
    batches: Mapping[str, Sequence[LandedFile]],
    left_out: Collection[str],
    keys_of: Callable[[Sequence[str]], Sequence[str | None]],
    matches: Callable[[str], bool],
) -> list[SetAside]:
    """Return what is set aside without the links whose files are all read under another path, in the same batch.

    A link to a file of another batch is not repeated: its own batch lacks the file. `listed` are the paths of all files
    that the landing folder lists, and `left_out` those of files that need no link. A file that would be in no batch
    beneath the link needs none either. `batches`, `keys_of` and `matches` are as above.

    For links to folders, too, one file stands for those of a batch whose places differ only in letters and digits of
    their names.
    """
    links = [entry for entry in set_aside if entry.target is not None]
    if not links:
        return [entry for entry in set_aside if not entry.is_repeated]
    key_of_link = dict(zip(links, keys_of([_text(link.path) for link in links]), strict=True))
    batch_of = {file.path: key for key, landed in batches.items() for file in landed}
    missed = (path for path in listed if path not in batch_of and path not in left_out)
    linkable = sorted([*missed, *_one_of_alike(batch_of)])

    def is_repeated(entry: SetAside) -> bool:
        target = entry.target
        if target is None:
            return entry.is_repeated
        if not entry.is_folder:
            return target in left_out or (target in batch_of and key_of_link[entry] in (None, batch_of[target]))
        prefix = f"{target}/" if target else ""
        start, end = bisect_left(linkable, prefix), bisect_left(linkable, f"{prefix}\U0010ffff")
        paths = {f"{_text(entry.path)}/{path[len(prefix) :]}": path for path in linkable[start:end]}
        linked = [path for path in paths if matches(path)]
        return all(
            key is None or key == batch_of.get(paths[path]) for path, key in zip(linked, keys_of(linked), strict=True)
        )

    return [entry for entry in set_aside if not is_repeated(entry)]


def _one_of_alike(batch_of: Mapping[str, str]) -> Iterable[str]:
    """Return one path of those in a batch and a folder whose names differ only in letters and digits."""
    found: dict[tuple[str, str], str] = {}
    for path, key in batch_of.items():
        found.setdefault((key, _alike(path)), path)
    return found.values()


def _places(batches: Mapping[str, Sequence[LandedFile]], depth: int) -> dict[str, set[str]]:
    """Return where batches have files beneath a folder of a depth, or would have them, each with their keys."""
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for key, landed in batches.items():
        seen: set[str] = set()
        for file in landed:
            place = _place(file.path, depth)
            alike = _alike(place)
            if alike not in seen:
                seen.add(alike)
                owners[place].add(key)
    return owners


def _alike(path: str) -> str:
    """Return a path with one letter for each word of the file's name."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{_WORD.sub('w', name)}"


def _place(path: str, depth: int) -> str:
    """Return the path of a file beneath its folder of this depth; its name if it is not that deep."""
    return "/".join(path.split("/")[depth:] or [path.rpartition("/")[2]])


def _text(path: str) -> str:
    """Return a path as UTF-8 text, with a question mark for what is none."""
    return path.encode("utf-8", "replace").decode()

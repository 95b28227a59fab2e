"""Find the batches that lack a file because it, or a folder that may hold it, is set aside.

Such a batch is not complete, whatever its other files are: it would be ingested without rows that belong to it, or
would replace the rows in the table by fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lance_ops.dagster.landing.landing_entries import LandedFile, SetAside

__all__ = ["batches_that_lack_files"]


def batches_that_lack_files(
    set_aside: Iterable[SetAside],
    batches: Mapping[str, Sequence[LandedFile]],
    keys_of: Callable[[Sequence[str]], Sequence[str | None]],
    matches: Callable[[str], bool],
) -> dict[str, str]:
    """Return the keys of batches that lack a file or may lack one, each with the reason.

    `keys_of` returns the keys of the batches to which files with such paths belong, and `matches` says whether the
    files count. What a folder holds is not known: its files may belong to a batch if a file that has the place of one
    of the batch's own files, but in this folder, would belong to the batch.
    """
    files = [entry for entry in set_aside if not entry.is_folder]
    folders = [entry for entry in set_aside if entry.is_folder and not entry.is_repeated]
    lacking: dict[str, str] = {}
    for file, key in zip(files, keys_of([_text(file.path) for file in files]), strict=True):
        if key is not None and key in batches:
            lacking.setdefault(key, f"it lacks {file.name}, which is set aside: {file.reason}")
    for folder in folders:
        reason = f"files of it may be in {folder.name}, which is set aside: {folder.reason}"
        own, moved = [], []
        for key, landed in batches.items():
            for path in {_moved(file.path, _text(folder.path)) for file in landed}:
                if matches(path):
                    own.append(key)
                    moved.append(path)
        for key, found in zip(own, keys_of(moved), strict=True):
            if key == found:
                lacking.setdefault(key, reason)
    return lacking


def _moved(path: str, folder: str) -> str:
    """Return the path that a file has in another folder, at the same depth if the folder is not too deep."""
    name = path.rpartition("/")[2]
    depth = folder.count("/") + 1
    return "/".join((folder, *(path.split("/")[depth:] or [name])))


def _text(path: str) -> str:
    """Return a path as UTF-8 text, with a question mark for what is none."""
    return path.encode("utf-8", "replace").decode()

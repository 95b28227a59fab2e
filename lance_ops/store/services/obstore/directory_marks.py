"""Tell empty objects from marks of directories, which obstore lists by the same names.

A console marks a directory by an empty object `name/`, and a hierarchical account by an empty object with metadata.
obstore lists the first kind as `name`, so each empty object is asked for by its name. The process remembers the
answers: a landing folder with a `_SUCCESS` in each directory is listed every minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from lance_ops.core.threads import ThreadPool
from lance_ops.store.services.obstore.errors import translating

__all__ = ["Listed", "is_object", "objects_of"]

Listed: TypeAlias = Mapping[str, Any]
"""What obstore states of an object: `path`, `size`, `last_modified` and `e_tag`."""

_AT_ONCE = 16
_MOST_ANSWERS = 100_000
_SETTLED = timedelta(minutes=1)
_PLACE = ("endpoint", "region", "account_name", "bucket", "container_name")
_answers: dict[tuple[object, ...], bool] = {}
"""By place, path, modification time and entity tag, whether there is an object of this name."""


def is_object(fs: Any, name: str) -> bool:
    """Return whether an empty object exists under exactly this name and does not represent a directory."""
    try:
        with translating():
            marks = fs.get(name).attributes
    except FileNotFoundError:
        return False
    return not any(marks.get(mark) == "true" for mark in ("hdi_isfolder", "is_directory"))


def objects_of(fs: Any, page: Iterable[Listed], prefix: str) -> list[Listed]:
    """Return what is listed in a directory without the marks of directories; new names are asked for side by side."""
    listed = list(page)
    empty = [each for each in listed if not each["size"] and each["path"] != prefix]
    are_there = iter(_are_there(fs, empty, Counter(each["path"] for each in listed))) if empty else iter(())
    return [each for each in listed if each["size"] or (each["path"] != prefix and next(are_there))]


def _are_there(fs: Any, empty: Sequence[Listed], times_listed: Mapping[str, int]) -> list[bool]:
    place = tuple(fs.config.get(name) for name in _PLACE)
    keys = [(place, each["path"], each["last_modified"], each["e_tag"]) for each in empty]
    known = [_answers.get(key) for key in keys]
    unknown = [each["path"] for each, answer in zip(empty, known, strict=True) if answer is None]
    with ThreadPool(min(max(len(unknown), 1), _AT_ONCE), "lance-ops-list") as pool:
        found = pool.map(is_object, [fs] * len(unknown), unknown)
        answers = [next(found) if answer is None else answer for answer in known]
    # An object of the same second could still take the place of a new one. Beside an object, a mark has its answer.
    settled = datetime.now(UTC) - _SETTLED
    new: dict[tuple[object, ...], bool] = {
        key: answer
        for key, answer, each in zip(keys, answers, empty, strict=True)
        if each["last_modified"] < settled and times_listed[each["path"]] == 1
    }
    if len(_answers) + len(new) > _MOST_ANSWERS:
        _answers.clear()
    _answers.update(new)
    return answers

"""Merge the columns that two writers wrote in one fragment, each as the list of files that it would have left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from lance_ops.table import DataFile, Fragment, with_tombstones
from lance_ops.transactions.conflicts.judgement import Retry

__all__ = ["with_written_columns"]

_Place: TypeAlias = tuple[int | None, str]
"""The base id and the path of a file."""


def with_written_columns(current: Fragment, before: Fragment, written: Fragment) -> Fragment | Retry:
    """Return `current` with the columns for which `written` has other files than `before`, from which it was made.

    Returns `Retry` if `current` has other files than `before` for one of these columns, too.
    """
    old, new, now = _file_of_each_field(before), _file_of_each_field(written), _file_of_each_field(current)
    changed = {field_id for field_id in old.keys() | new.keys() if old.get(field_id) != new.get(field_id)}
    for field_id in sorted(changed):
        if now.get(field_id) not in (old.get(field_id), new.get(field_id)):
            return Retry(f"the same field of fragment {current.id} got new values")
    known = {_place(file) for file in before.files}
    kept = (with_tombstones(file, changed) for file in current.files)
    return replace(current, files=(*kept, *(file for file in written.files if _place(file) not in known)))


def _file_of_each_field(fragment: Fragment) -> Mapping[int, _Place]:
    return {field_id: _place(file) for file in fragment.files for field_id in file.live_fields}


def _place(file: DataFile) -> _Place:
    return file.base_id, file.path

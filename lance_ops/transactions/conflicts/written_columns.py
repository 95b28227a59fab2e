"""Merge the columns that two writers wrote in one fragment, each as the list of files that it would have left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lance_ops.table import Fragment, with_tombstones
from lance_ops.transactions.conflicts.judgement import Retry

__all__ = ["with_written_columns"]


def with_written_columns(current: Fragment, before: Fragment, written: Fragment) -> Fragment | Retry:
    """Return `current` with the columns for which `written` has other files than `before`, from which it was made.

    Returns `Retry` if `current` has other files than `before` for one of these columns, too, or has lost its file.
    """
    old, new, now = _file_of_each_field(before), _file_of_each_field(written), _file_of_each_field(current)
    changed = {field_id for field_id in old.keys() | new.keys() if old.get(field_id) != new.get(field_id)}
    for field_id in sorted(changed):
        if now.get(field_id) in (old.get(field_id), new.get(field_id)):
            continue
        if field_id not in now:
            return Retry(f"field {field_id}, which ours writes in fragment {current.id}, was dropped")
        return Retry(f"the same field of fragment {current.id} got new values")
    known = {file.place for file in before.files}
    kept = (with_tombstones(file, changed) for file in current.files)
    return replace(current, files=(*kept, *(file for file in written.files if file.place not in known)))


def _file_of_each_field(fragment: Fragment) -> Mapping[int, tuple[int | None, str]]:
    return {field_id: file.place for file in fragment.files for field_id in file.live_fields}

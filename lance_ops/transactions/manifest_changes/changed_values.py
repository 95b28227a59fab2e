"""Find the fragments in which a version changed values that an index holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lance_ops.table import Fragment, Manifest

__all__ = ["files_by_field", "fragments_with_changed_values"]


def fragments_with_changed_values(before: Manifest, after: Manifest, fields: Collection[int]) -> frozenset[int]:
    """Return the fragments of both versions in which a field's values moved to another file, or first got a file."""
    changed = after.fragments.changes_since(before.fragments).new
    old = before.fragments.having({fragment.id for fragment in changed})
    old_files = {fragment.id: files_by_field(fragment, fields) for fragment in old}
    return frozenset(
        fragment.id
        for fragment in changed
        if fragment.id in old_files and old_files[fragment.id] != files_by_field(fragment, fields)
    )


def files_by_field(fragment: Fragment, fields: Collection[int]) -> Mapping[int, tuple[int | None, str]]:
    """Return the file (base id, path) that holds each field's values; fields without one, all null, are left out."""
    return {key: (file.base_id, file.path) for file in fragment.files for key in file.live_fields if key in fields}

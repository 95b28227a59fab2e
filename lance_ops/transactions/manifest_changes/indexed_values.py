"""Tell where values that an index holds came to be others, between one version and the next."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lance_ops.table import Fragment, Manifest

__all__ = ["homes", "with_other_values"]


def with_other_values(before: Manifest, after: Manifest, fields: Collection[int]) -> frozenset[int]:
    """Return the fragments of both versions in which values of one of the fields are in another file, or in one now."""
    changed = after.fragments.since(before.fragments).new
    known = {fragment.id: homes(fragment, fields) for fragment in before.fragments.having({one.id for one in changed})}
    return frozenset(one.id for one in changed if known.get(one.id, homes(one, fields)) != homes(one, fields))


def homes(fragment: Fragment, fields: Collection[int]) -> Mapping[int, tuple[int | None, str]]:
    """Return the file that each of the fields' values are read from; none where all are null."""
    return {key: (file.base_id, file.path) for file in fragment.files for key in file.live_fields if key in fields}

"""Find fragments by id, the fields that they hold, and the fragments of an operation that a manifest lacks."""

from __future__ import annotations

from collections.abc import Iterable

from lance_ops.core.errors import IncompatibleTransaction
from lance_ops.table import Fragment, Manifest

__all__ = ["check_fragments_exist", "fragments_by_id", "live_fields"]


def fragments_by_id(fragments: Iterable[Fragment]) -> dict[int, Fragment]:
    """Return a map from id to fragment."""
    return {fragment.id: fragment for fragment in fragments}


def live_fields(fragments: Iterable[Fragment]) -> frozenset[int]:
    """Return the fields that the fragments' files hold values of."""
    return frozenset(field_id for fragment in fragments for file in fragment.files for field_id in file.live_fields)


def check_fragments_exist(manifest: Manifest, fragment_ids: Iterable[int], operation: str) -> None:
    """Raise `IncompatibleTransaction` naming the fragments that the manifest lacks."""
    wanted = set(fragment_ids)
    missing = sorted(wanted.difference(manifest.fragments.ids)) if wanted else []
    if missing:
        raise IncompatibleTransaction(
            f"{operation} changes fragments {missing[:5]}, which version {manifest.version} does not have: "
            "plan it again on the newest version"
        )

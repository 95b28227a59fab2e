"""Find in a manifest what an operation is about."""

from __future__ import annotations

from collections.abc import Iterable

from lance_ops.core.errors import IncompatibleTransaction
from lance_ops.table import Fragment, Manifest

__all__ = ["by_id", "check_present"]


def by_id(fragments: Iterable[Fragment]) -> dict[int, Fragment]:
    """Return the fragments by id."""
    return {fragment.id: fragment for fragment in fragments}


def check_present(manifest: Manifest, fragment_ids: Iterable[int], operation: str) -> None:
    """Raise `IncompatibleTransaction` naming the fragments that the manifest lacks."""
    wanted = set(fragment_ids)
    missing = sorted(wanted.difference(manifest.fragments.ids)) if wanted else []
    if missing:
        raise IncompatibleTransaction(
            f"{operation} is about fragments {missing[:5]}, which version {manifest.version} does not have: "
            "plan it again on the newest version"
        )

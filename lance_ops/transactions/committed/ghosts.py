"""Tell a version that the table grew from, or ends with, from a ghost.

A request that everybody gave up can arrive late. If the version that it was for had been made by another and cleaned up
since, it makes that version anew: a ghost, which no later version grew out of. So a version counts if it is the newest,
if a later one holds what it brought, or if the next one is what its transaction makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lance_ops.core.errors import LanceOpsError, VersionNotFound
from lance_ops.table import Fragment, Manifest
from lance_ops.transactions.committed.committed_versions import Landed
from lance_ops.transactions.manifest_steps import next_manifest
from lance_ops.transactions.operation import Context
from lance_ops.transactions.operations import Append, Overwrite, Update

__all__ = ["has_grown"]


def has_grown(landed: Landed, after: Landed | None, read: Callable[[int], Manifest]) -> bool | None:
    """Return whether `after`, the next retained version (None behind the newest), came out of `landed`.

    None where what would tell it was cleaned up. `read` gives the manifests of other versions.
    """
    if after is None:
        return True
    brought = _brought(landed)
    ids = {fragment.id for fragment in brought}
    if _data_files(brought) & _data_files(after.manifest.fragments.having(ids)):
        return True
    theirs = after.transaction
    if after.version != landed.version + 1 or theirs is None:
        return None
    try:
        needed = {version: read(version) for version in theirs.operation.needed_versions}
    except VersionNotFound:
        return None
    context = Context(needed, after.manifest.data_format.version, after.manifest.uses_stable_row_ids)
    try:
        made = next_manifest(landed.manifest, theirs, context, after.manifest.timestamp_ns or 0)
    except LanceOpsError:
        return False
    return made.fragments == after.manifest.fragments and made.max_fragment_id == after.manifest.max_fragment_id


def _brought(landed: Landed) -> tuple[Fragment, ...]:
    """Return the fragments that were new in a version, where its transaction says them: they have the highest ids."""
    added: tuple[Fragment, ...] = ()
    match landed.transaction.operation if landed.transaction else None:
        case Append(fragments=new) | Overwrite(fragments=new) | Update(new_fragments=new):
            added = new
    fragments = landed.manifest.fragments
    return fragments[len(fragments) - len(added) :] if len(added) <= len(fragments) else ()


def _data_files(fragments: Iterable[Fragment]) -> set[tuple[int | None, str]]:
    return {(file.base_id, file.path) for fragment in fragments for file in fragment.files}

"""Tell whether the version after one was made from it, or from another that had its number before.

Where clean-up removed a version, a writer that slept since before it was made can make one of that number again. What
came after was then made from the first, and nothing of the second will ever be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from lance_ops.core.errors import LanceOpsError
from lance_ops.table import Fragment, Manifest
from lance_ops.transactions.committed.committed_versions import Landed
from lance_ops.transactions.manifest_steps import next_manifest
from lance_ops.transactions.operation import Context

__all__ = ["was_continued"]

_Files: TypeAlias = frozenset[tuple[int | None, str]]


def was_continued(made: Manifest, before: Manifest, after: Landed, read: Callable[[int], Manifest]) -> bool:
    """Return whether the version `after` is that of `made`, which was made from `before`.

    It is if it names a file that only `made` brought, or if its transaction makes the same of `made`. `read` gives the
    manifests of other versions.
    """
    new = made.fragments.since(before.fragments).new
    ids = {fragment.id for fragment in new}
    brought = _files(new) - _files(before.fragments.having(ids))
    if brought & _files(after.manifest.fragments.having(ids)):
        return True
    if after.transaction is None:
        return False
    try:
        needed = {version: read(version) for version in after.transaction.operation.needed_versions}
        expected = next_manifest(made, after.transaction, Context(manifests=needed), 0)
    except LanceOpsError:
        return False
    return _content(expected) == _content(after.manifest)


def _content(manifest: Manifest) -> tuple[object, ...]:
    """Return what two versions that come from different ones do not share."""
    return (
        _files(manifest.fragments),
        manifest.config,
        manifest.table_metadata,
        manifest.schema.metadata,
        [(field.id, field.name, field.metadata) for field in manifest.schema.walk()],
        {index.uuid for index in manifest.indices},
        set(manifest.base_paths),
    )


def _files(fragments: Iterable[Fragment]) -> _Files:
    names: set[tuple[int | None, str]] = set()
    for fragment in fragments:
        names.update((file.base_id, file.path) for file in fragment.files)
        if fragment.deletion_file is not None:
            names.add((fragment.deletion_file.base_id, fragment.deletion_file.name(fragment.id)))
    return frozenset(names)

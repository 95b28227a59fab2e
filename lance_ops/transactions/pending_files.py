"""Files that no version names yet: removed again when it is certain that no version will name them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeAlias

from lance_ops.core.errors import CommitStateUnknown, LanceOpsError
from lance_ops.store import Store
from lance_ops.table.manifest import Place

__all__ = ["OwnFile", "delete_paths", "removing_on_failure", "removing_unless_committed"]

OwnFile: TypeAlias = str | Place
"""A file that a commit would bring in: by its path in the dataset's root, or wherever it is."""


def delete_paths(store: Store, paths: Iterable[OwnFile]) -> None:
    """Delete files that no version names, data files with their blobs; what cannot be now is left to clean-up.

    What is not said to be elsewhere is in `store`.
    """
    for path in paths:
        place = path if isinstance(path, Place) else Place(store, path)
        sidecars = place.path.removesuffix(".lance")
        with suppress(LanceOpsError):
            place.store.delete(place.path)
            if sidecars != place.path:
                for info in list(place.store.list(sidecars)):
                    place.store.delete(info.path)


@contextmanager
def removing_on_failure(store: Store, paths: Sequence[OwnFile]) -> Iterator[None]:
    """Delete `paths`, as they are then, when the block raises: for work that no commit was tried with yet."""
    try:
        yield
    except BaseException:
        delete_paths(store, paths)
        raise


@contextmanager
def removing_unless_committed(
    store: Store, paths: Iterable[OwnFile], *, kept_after: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Delete `paths`, as they are then, when the block, which commits them, has failed for certain.

    They stay after `CommitStateUnknown`, after errors of the kinds `kept_after`, and at an interrupt, which says
    nothing of whether the version is there.
    """
    spared: tuple[type[Exception], ...] = (CommitStateUnknown, *kept_after)
    try:
        yield
    except spared:
        raise
    except Exception:  # of whatever kind: it says that there is no version
        delete_paths(store, paths)
        raise

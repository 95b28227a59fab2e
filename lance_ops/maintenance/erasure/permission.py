"""What an erasure may touch. It is checked before anything is changed, and again before each round."""

from __future__ import annotations

from lance_ops.core.errors import HeldByRunningWork, InvalidInput, UnsafePath, UnsupportedFeature
from lance_ops.core.file_names import VERSIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.indices import index_type_of
from lance_ops.maintenance.erasure.searching import Holdings
from lance_ops.snapshot import Snapshot
from lance_ops.store import path_beneath
from lance_ops.table import IndexMetadata

__all__ = ["ErasureOptions", "check_permitted", "check_permitted_in_round"]


@dataclass(frozen=True)
class ErasureOptions:
    """Why the rows go, and what may go with them.

    Tags on versions that hold the rows are removed only with `remove_tags`. Other branches are rewritten, and the
    versions that they began with removed, only with `rewrite_branches`. `delete_unverified` also removes young files
    that no version names: only while nothing else writes. Nothing is erased if more than `at_most_rows` would go.
    """

    reason: str
    remove_tags: bool = False
    rewrite_branches: bool = False
    delete_unverified: bool = False
    at_most_rows: int | None = None

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise InvalidInput("reason is empty: say why the rows go; do not name the subject, for the reason stays")


def check_permitted(found: Holdings, options: ErasureOptions) -> frozenset[str]:
    """Raise `InvalidInput` that names what holds the rows and may not be touched, or if the reason states a value.

    Returns the roots of other datasets whose files store the rows, such as a clone's source. They are left alone.
    Raises `HeldByRunningWork`, `UnsafePath` and `UnsupportedFeature` as `erase` does.
    """
    if options.at_most_rows is not None and found.num_live_rows > options.at_most_rows:
        raise InvalidInput(
            f"{found.num_live_rows:,} rows match and at_most_rows is {options.at_most_rows:,}: nothing was erased"
        )
    others = check_permitted_in_round(found, options)
    names = ", ".join(
        f"version {version} of {branch.name} ({path})"
        for branch in found.branches[::-1]
        for version, path in branch.pins.items()
    )
    if names:
        raise HeldByRunningWork(
            f"{found.main.head.uri}: running work holds the rows: {names}; try again when it is done, or delete these "
            "files if its process has died"
        )
    return others


def check_permitted_in_round(found: Holdings, options: ErasureOptions) -> frozenset[str]:
    """Check before each round what it may touch.

    Raises and returns as `check_permitted` does, but looks neither at the number of rows nor at running work, which
    may begin at any time.
    """
    main, stated = found.main.head, options.reason.encode()
    if any(value in stated for value in found.values):
        raise InvalidInput("the reason states a value of the rows, and stays: say why they go without it")
    if found.tags and not options.remove_tags:
        names = ", ".join(f"{name} (version {version} of {branch})" for name, (branch, version) in found.tags.items())
        raise InvalidInput(f"{main.uri}: tags hold the rows: {names}; permit remove_tags, or delete the tags")
    branches = [branch.name for branch in found.branches[:-1] if branch.holding]
    if branches and not options.rewrite_branches:
        raise InvalidInput(
            f"{main.uri}: branches hold the rows: {', '.join(branches)}; permit rewrite_branches, or delete them"
        )
    if found.detached:
        names = ", ".join(map(str, found.detached))
        raise InvalidInput(f"{main.uri}: detached versions hold the rows: {names}; remove their manifests first")
    for branch in found.branches:
        for index in branch.head.manifest.indices:
            if index.name in branch.stale_indices:
                _check_can_be_built(branch.head, index)
    _check_named_files_are_known(found)
    return _other_datasets_with_rows(found)


def _check_named_files_are_known(found: Holdings) -> None:
    """Raise `UnsupportedFeature` for a version that stays and may name files in ways that this release does not know.

    The files of removed versions cannot be deleted beside it. Clean-up of one branch counts each version of another as
    one that stays, even if it is to be removed later.
    """
    for branch in found.branches:
        going = branch.removable_now if len(found.branches) == 1 else ()
        staying = branch.unwritable.keys() - going
        if staying:
            error = branch.unwritable[min(staying)]
            raise UnsupportedFeature(
                f"{error.feature} (remove that version or its branch, or use a release that may write it, and erase "
                "again)",
                error.where,
            ) from error


def _other_datasets_with_rows(found: Holdings) -> frozenset[str]:
    """Return the roots of the other datasets whose files store the rows.

    Raises `UnsafePath` for a file outside the root that is not another dataset's: only this dataset would remove it.
    """
    root = found.main.head.uri
    outside = {uri for uri in found.files if path_beneath(root, uri) is None}
    if not outside:
        return frozenset()
    bases = {
        store.uri: store
        for branch in found.branches
        for version in (branch.head, *map(branch.head.at, branch.holding))
        for store in version.file_locations.dataset_roots()
        if path_beneath(root, store.uri) is None
    }
    roots = [uri for uri, store in bases.items() if store.list_names(VERSIONS_DIR, limit=1)]
    owners = {uri: [each for each in roots if path_beneath(each, uri) is not None] for uri in outside}
    orphans = sorted(uri for uri, owning in owners.items() if not owning)
    if orphans:
        raise UnsafePath(
            f"{root} keeps {orphans[0]} outside its root, where nothing is removed: delete the rows, compact, clean "
            "up, remove that file, and erase again"
        )
    return frozenset(each for owning in owners.values() for each in owning)


def _check_can_be_built(head: Snapshot, index: IndexMetadata) -> None:
    try:
        index_type_of(index)
    except UnsupportedFeature as error:
        raise UnsupportedFeature(
            f"building {error.feature} anew (drop it with `lance-ops reindex --drop {index.name}`, erase, and build it "
            "with the library that made it)",
            f"{head.uri}, {error.where}",
        ) from error

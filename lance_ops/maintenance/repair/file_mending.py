"""Choose the actions that mend the files of one fragment with those of a copy."""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.core.errors import ObjectNotFound
from lance_ops.maintenance.repair.actions import (
    FileCopy,
    PutFilesBack,
    RepairAction,
    ReplaceDataFile,
    ReplaceDeletionFile,
)
from lance_ops.maintenance.repair.dataset_copies import DatasetCopy
from lance_ops.maintenance.verification import DamageKind, Finding
from lance_ops.snapshot import Snapshot
from lance_ops.table import DataFile, Fragment
from lance_ops.table.manifest import ObjectLocation

__all__ = ["mend_fragment"]

_BYTES_AT_ONCE = 16 * 1024 * 1024


def mend_fragment(
    snapshot: Snapshot, copy: DatasetCopy, fragment_id: int, damages: Sequence[Finding]
) -> list[RepairAction] | None:
    """Return the actions that mend all damages of a fragment; None if some of them cannot be mended by the copy."""
    fragments = list(snapshot.manifest.fragments.having({fragment_id}))
    if len(fragments) != 1:
        return None
    [fragment] = fragments
    actions: list[RepairAction] = []
    left = list(damages)
    for file in fragment.files:
        own = [damage for damage in left if _is_of_file(snapshot, file, damage)]
        if own:
            action = _mended_data_file(snapshot, copy, fragment, file, own)
            if action is None:
                return None
            actions.append(action)
            left = [damage for damage in left if damage not in own]
    if fragment.deletion_file is not None:
        deletions = snapshot.file_locations.deletion_file(fragment)
        own = [damage for damage in left if damage.path == deletions.uri]
        if own:
            source = copy.deletion_file(fragment)
            if source is None or (not _are_missing(own) and _have_equal_bytes(deletions, source.source)):
                return None
            if _are_missing(own) and fragment.deletion_file.base_id is None:
                actions.append(PutFilesBack((source,)))
            else:
                actions.append(ReplaceDeletionFile(fragment_id, fragment.deletion_file, source.source))
            left = [damage for damage in left if damage not in own]
    return None if left else actions


def _mended_data_file(
    snapshot: Snapshot, copy: DatasetCopy, fragment: Fragment, file: DataFile, damages: Sequence[Finding]
) -> RepairAction | None:
    """Put back what is missing, if nothing else is wrong; otherwise replace the file with its sidecars."""
    source = copy.data_file(fragment, file)
    if source is None:
        return None
    sidecars = copy.sidecars(file, source)
    if sidecars is None:
        return None
    if _are_missing(damages) and file.base_id is None:
        missing = _missing(snapshot, damages, (source, *sidecars))
        return PutFilesBack(missing) if len(missing) == len({damage.path for damage in damages}) else None
    ours = snapshot.file_locations.data_file(file.base_id, file.path)
    is_of_sidecars = all(damage.path != ours.uri for damage in damages)
    if not is_of_sidecars and _have_equal_bytes(ours, source.source):
        return None  # the file is what it was: the manifest is wrong about it
    return ReplaceDataFile(fragment.id, file, source, sidecars)


def _missing(snapshot: Snapshot, damages: Sequence[Finding], copies: Sequence[FileCopy]) -> tuple[FileCopy, ...]:
    paths = {damage.path for damage in damages}
    return tuple(copy for copy in copies if snapshot.store.uri_of(copy.path) in paths)


def _have_equal_bytes(ours: ObjectLocation, theirs: ObjectLocation) -> bool:
    try:
        size = ours.store.size(ours.path)
        if size != theirs.store.size(theirs.path):
            return False
        return all(
            ours.store.get_range(ours.path, start, stop) == theirs.store.get_range(theirs.path, start, stop)
            for start, stop in ((at, min(at + _BYTES_AT_ONCE, size)) for at in range(0, size, _BYTES_AT_ONCE))
        )
    except ObjectNotFound:
        return False


def _are_missing(damages: Sequence[Finding]) -> bool:
    return all(damage.kind is DamageKind.MISSING_FILE for damage in damages)


def _is_of_file(snapshot: Snapshot, file: DataFile, damage: Finding) -> bool:
    """Return whether a damage is of a data file or of one of its blob sidecars."""
    uri = snapshot.file_locations.data_file(file.base_id, file.path).uri
    return damage.path is not None and (damage.path == uri or damage.path.startswith(f"{uri.removesuffix('.lance')}/"))

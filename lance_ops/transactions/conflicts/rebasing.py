"""Bring together what two writers say of rows: deletions in the same fragments, and all of rows that moved.

Who deletes writes whole deletion vectors, knowing only the rows that were deleted in the version it read. If two
writers deleted different rows of a fragment, the union is what both meant; if they share a row, one of them deleted (or
updated) a row that was gone. A deletion is carried through any number of rewrites that landed before it, and a rewrite
takes the deletions along that landed before it. A new index of row ids covers the fragments that its rows are in then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyroaring import BitMap

from lance_ops.core.errors import ObjectNotFound, UnsupportedFeature
from lance_ops.table import DeletionFile, Fragment, Manifest, encode_deletion_vector
from lance_ops.transactions.conflicts.deletion_vectors import DeletionVectors
from lance_ops.transactions.conflicts.judgement import Retry
from lance_ops.transactions.conflicts.remapped_rows import Move, Rows, follow
from lance_ops.transactions.footprint import covered_after
from lance_ops.transactions.manifest_changes import by_id, number_fragments
from lance_ops.transactions.operation import Operation
from lance_ops.transactions.operations import CreateIndex, Delete, Rewrite, RewriteGroup, Update

__all__ = ["Rebased", "rebase"]

_NO_FILE = 0


@dataclass(frozen=True)
class Rebased:
    """An operation as it applies to the newest version, and the paths of files that it does not bring any more."""

    operation: Operation
    superseded: tuple[str, ...] = ()


def rebase(
    operation: Operation, base: Manifest, newest: Manifest, moves: Sequence[Move], vectors: DeletionVectors
) -> Rebased | Retry:
    """Return the operation with everybody's deletions, where the rows are now, or why it must be planned again.

    `operation` is as it was planned on `base`; `moves` are the rewrites since that took its rows along, in order.
    Raises `UnsupportedFeature` for an operation that says nothing of rows.
    """
    try:
        match operation:
            case Delete() | Update():
                return _rebase_deletion(operation, base, newest, moves, vectors)
            case Rewrite():
                return _rebase_rewrite(operation, newest, vectors)
            case CreateIndex():
                return _rebase_index(operation, moves)
    except ObjectNotFound as error:
        return Retry(f"which rows were deleted cannot be told any more: a deletion file was cleaned up ({error})")
    raise UnsupportedFeature(f"rebasing the operation {operation.name}")


def _rebase_deletion(
    operation: Delete | Update, base: Manifest, newest: Manifest, moves: Sequence[Move], vectors: DeletionVectors
) -> Rebased | Retry:
    before, current = by_id(base.fragments), by_id(newest.fragments)
    removed = operation.deleted_fragment_ids if isinstance(operation, Delete) else operation.removed_fragment_ids
    standing = {key for key, fragment in before.items() if _stands(fragment, current)}
    touched = [fragment for fragment in operation.updated_fragments if fragment.id not in standing]
    lost = [before[key] for key in removed if key not in standing]
    vectors.read_ahead([*touched, *lost, *(before[fragment.id] for fragment in touched)])
    rows = {fragment.id: vectors.read(fragment) - vectors.read(before[fragment.id]) for fragment in touched}
    rows |= {fragment.id: _live_rows(fragment, vectors) for fragment in lost}
    if rows and isinstance(operation, Update) and _writes_in_place(operation):
        return Retry("rows that moved away were moved by another")
    for move in moves:
        followed = move.follow(rows, vectors)
        if isinstance(followed, Retry):
            return followed
        rows = followed
    merged = _merged(rows, current, vectors)
    if isinstance(merged, Retry):
        return merged
    emptied = [key for key, vector in merged.items() if len(vector) == current[key].physical_rows]
    files = vectors.write({key: vector for key, vector in merged.items() if key not in emptied}, newest.version)
    updated = (
        *(fragment for fragment in operation.updated_fragments if fragment.id in standing),
        *(replace(current[key], deletion_file=file) for key, file in files.items()),
    )
    gone = (*(key for key in removed if key in standing), *emptied)
    superseded = tuple(path for fragment in touched if (path := fragment.deletion_path))
    if isinstance(operation, Delete):
        return Rebased(replace(operation, updated_fragments=updated, deleted_fragment_ids=gone), superseded)
    return Rebased(replace(operation, updated_fragments=updated, removed_fragment_ids=gone), superseded)


def _writes_in_place(operation: Update) -> bool:
    return operation.in_place or bool(operation.updated_offsets)


def _merged(rows: Rows, current: Mapping[int, Fragment], vectors: DeletionVectors) -> Rows | Retry:
    """Return fragments' whole deletion vectors with rows added that are not deleted yet."""
    vectors.read_ahead(current[key] for key in rows if key in current)
    merged = {}
    for key, ours in sorted(rows.items()):
        theirs = vectors.read(current[key]) if key in current else ours
        if ours & theirs:
            return Retry(f"{len(ours & theirs)} rows of fragment {key} were deleted or updated by another")
        merged[key] = ours | theirs
    return merged


def _rebase_rewrite(operation: Rewrite, newest: Manifest, vectors: DeletionVectors) -> Rebased | Retry:
    current = by_id(newest.fragments)
    highest = newest.max_fragment_id
    groups = []
    hidden: Rows = {}
    for group in operation.groups:
        new, highest = number_fragments(group.new_fragments, highest)  # deletion files are named by these ids
        groups.append(replace(group, new_fragments=new))
        rows = _deleted_since(group, current, vectors)
        if not rows:
            continue
        followed = follow(group, rows, vectors)
        if isinstance(followed, Retry):
            return followed
        hidden |= {one.id: vectors.read(one) | offsets for one, offsets in zip(new, followed, strict=True) if offsets}
    new_by_id = {fragment.id: fragment for group in groups for fragment in group.new_fragments}
    emptied = {key for key, vector in hidden.items() if len(vector) == new_by_id[key].physical_rows}
    files = vectors.write({key: vector for key, vector in hidden.items() if key not in emptied}, newest.version)
    # No version will have the emptied ones, only the transaction: who follows rows through it counts theirs too.
    files |= {key: encode_deletion_vector(hidden[key], newest.version, _NO_FILE)[0] for key in emptied}
    segments = {index.uuid for index in newest.indices}
    kept = tuple(index for index in operation.rewritten_indices if index.old_id in segments)
    dropped = [index for index in operation.rewritten_indices if index.old_id not in segments]
    rebased = replace(
        operation,
        groups=tuple(_with_deletions(group, files) for group in groups),
        rewritten_indices=kept,
    )
    superseded = [path for key in emptied for path in new_by_id[key].data_paths()]
    superseded += [path for key in hidden if (path := new_by_id[key].deletion_path)]
    superseded += [path for index in dropped for path in index.paths()]
    return Rebased(rebased, tuple(superseded))


def _rebase_index(operation: CreateIndex, moves: Sequence[Move]) -> Rebased:
    """Let segments of row ids cover the fragments that have their rows now."""
    segments = []
    for segment in operation.new_indices:
        for old, new in (move.moved for move in moves):
            if segment.fragment_bitmap is not None:
                segment = replace(segment, fragment_bitmap=covered_after(segment.fragment_bitmap, old, new))
        segments.append(segment)
    return Rebased(replace(operation, new_indices=tuple(segments)))


def _with_deletions(group: RewriteGroup, files: Mapping[int, DeletionFile]) -> RewriteGroup:
    new = (replace(one, deletion_file=files.get(one.id, one.deletion_file)) for one in group.new_fragments)
    return replace(group, new_fragments=tuple(new))


def _deleted_since(group: RewriteGroup, current: Mapping[int, Fragment], vectors: DeletionVectors) -> Rows:
    """Return the rows of a group's old fragments that were deleted since these were read."""
    touched = [fragment for fragment in group.old_fragments if not _stands(fragment, current)]
    vectors.read_ahead([*touched, *(current[fragment.id] for fragment in touched if fragment.id in current)])
    rows = {}
    for fragment in touched:
        now = current.get(fragment.id)
        live = _live_rows(fragment, vectors)
        rows[fragment.id] = live if now is None else live & vectors.read(now)
    return rows


def _stands(fragment: Fragment, current: Mapping[int, Fragment]) -> bool:
    """Whether no row of a fragment was deleted or moved since."""
    now = current.get(fragment.id)
    return now is not None and now.deletion_file == fragment.deletion_file


def _live_rows(fragment: Fragment, vectors: DeletionVectors) -> BitMap:
    return BitMap(range(fragment.physical_rows)) - vectors.read(fragment)

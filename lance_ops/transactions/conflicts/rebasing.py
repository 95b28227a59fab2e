"""Rebase an operation onto the newest version: merge its deletions with others', and remap its rows.

A delete writes whole deletion vectors, and knows only the rows that were deleted in the version it read. If two writers
deleted different rows of a fragment, the result is the union. If they share a row, one of them deleted (or updated) a
row that no longer existed. A deletion is remapped through every concurrent rewrite. A rewrite deletes, in its new
fragments, the rows that concurrent transactions deleted. A new index of row ids covers the rewritten fragments. An
update in place lists all files of its fragments, so it takes over the files that others wrote for other columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyroaring import BitMap

from lance_ops.core.errors import ObjectNotFound, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.table import DeletionFile, Fragment, Manifest, encode_deletion_vector
from lance_ops.transactions.conflicts.deletion_vectors import DeletionVectors
from lance_ops.transactions.conflicts.judgement import Retry
from lance_ops.transactions.conflicts.row_remapping import CommittedRewriteGroup, OffsetsByFragment, remapped_offsets
from lance_ops.transactions.conflicts.written_columns import with_written_columns
from lance_ops.transactions.footprint import remapped_coverage
from lance_ops.transactions.manifest_changes import assign_fragment_ids, check_fragments_exist, fragments_by_id
from lance_ops.transactions.operation import Operation
from lance_ops.transactions.operations import CreateIndex, Delete, Rewrite, RewriteGroup, Update

__all__ = ["Rebased", "rebase"]

_NO_FILE = 0


@dataclass(frozen=True)
class Rebased:
    """An operation as it applies to the newest version.

    `superseded` are paths of files that the planned operation brings and the rebased one does not.
    """

    operation: Operation
    superseded: tuple[str, ...] = ()


def rebase(
    operation: Operation,
    base: Manifest,
    newest: Manifest,
    rewrites: Sequence[CommittedRewriteGroup],
    vectors: DeletionVectors,
) -> Rebased | Retry:
    """Return the operation as it applies to the newest version, or why it must be planned again.

    `operation` is in the form that was planned on `base`. `rewrites` are the concurrent ones that moved its rows, in
    order. Raises `UnsupportedFeature` for an operation that has no rows to rebase.
    """
    try:
        match operation:
            case Update() if operation.in_place:
                return _rebase_columns(operation, base, newest)
            case Delete() | Update():
                return _rebase_deletion(operation, base, newest, rewrites, vectors)
            case Rewrite():
                return _rebase_rewrite(operation, newest, vectors)
            case CreateIndex():
                return _rebase_index(operation, rewrites)
    except ObjectNotFound as error:
        return Retry(f"which rows were deleted is not known any more, because a deletion file was cleaned up ({error})")
    raise UnsupportedFeature(f"rebasing the operation {operation.name}")


def _rebase_deletion(
    operation: Delete | Update,
    base: Manifest,
    newest: Manifest,
    rewrites: Sequence[CommittedRewriteGroup],
    vectors: DeletionVectors,
) -> Rebased | Retry:
    before, current = fragments_by_id(base.fragments), fragments_by_id(newest.fragments)
    removed = operation.deleted_fragment_ids if isinstance(operation, Delete) else operation.removed_fragment_ids
    check_fragments_exist(base, {*removed, *(each.id for each in operation.updated_fragments)}, operation.name)
    unchanged = {key for key, fragment in before.items() if _has_same_rows(fragment, current)}
    touched = [fragment for fragment in operation.updated_fragments if fragment.id not in unchanged]
    dropped = [before[key] for key in removed if key not in unchanged]
    rows = _deleted_rows(touched, dropped, before, vectors)
    if rows and isinstance(operation, Update) and operation.updated_offsets:
        return Retry("another writer moved rows that ours writes values to")
    for rewrite in rewrites:
        remapped = rewrite.remap(rows, vectors)
        if isinstance(remapped, Retry):
            return remapped
        rows = remapped
    merged = _merged(rows, current, vectors)
    if isinstance(merged, Retry):
        return merged
    emptied = [key for key, vector in merged.items() if len(vector) == current[key].physical_rows]
    files = vectors.write({key: vector for key, vector in merged.items() if key not in emptied}, newest.version)
    updated = (
        *(fragment for fragment in operation.updated_fragments if fragment.id in unchanged),
        *(replace(current[key], deletion_file=file) for key, file in files.items()),
    )
    gone = (*(key for key in removed if key in unchanged), *emptied)
    superseded = tuple(path for fragment in touched if (path := fragment.deletion_path))
    if isinstance(operation, Delete):
        return Rebased(replace(operation, updated_fragments=updated, deleted_fragment_ids=gone), superseded)
    return Rebased(replace(operation, updated_fragments=updated, removed_fragment_ids=gone), superseded)


def _deleted_rows(
    updated: Sequence[Fragment], dropped: Sequence[Fragment], before: Mapping[int, Fragment], vectors: DeletionVectors
) -> OffsetsByFragment:
    """Return the rows that an operation deletes, by the fragments of its read version (`before`).

    `updated` have the operation's new deletion files, `dropped` lose all of their rows.
    """
    vectors.read_ahead([*updated, *dropped, *(before[fragment.id] for fragment in updated)])
    rows = {fragment.id: vectors.read(fragment) - vectors.read(before[fragment.id]) for fragment in updated}
    return rows | {fragment.id: _live_rows(fragment, vectors) for fragment in dropped}


def _rebase_columns(operation: Update, base: Manifest, newest: Manifest) -> Rebased | Retry:
    touched = {*operation.removed_fragment_ids, *(fragment.id for fragment in operation.updated_fragments)}
    check_fragments_exist(base, touched, operation.name)
    before, current = (fragments_by_id(each.fragments.having(touched)) for each in (base, newest))
    moved = [key for key in operation.removed_fragment_ids if not _has_same_rows(before[key], current)]
    if moved:
        return Retry(f"another writer moved or deleted rows of fragment {min(moved)}, which ours removes")
    updated = []
    for written in operation.updated_fragments:
        merged = with_written_columns(current[written.id], before[written.id], written)
        if isinstance(merged, Retry):
            return merged
        updated.append(merged)
    return Rebased(replace(operation, updated_fragments=tuple(updated)))


def _merged(
    rows: OffsetsByFragment, current: Mapping[int, Fragment], vectors: DeletionVectors
) -> OffsetsByFragment | Retry:
    """Return the fragments' current deletion vectors with our rows added; `Retry` if one is deleted already."""
    vectors.read_ahead(current[key] for key in rows if key in current)
    merged = {}
    for key, ours in sorted(rows.items()):
        theirs = vectors.read(current[key]) if key in current else ours
        if ours & theirs:
            return Retry(f"{len(ours & theirs)} rows of fragment {key} were deleted or updated by another writer")
        merged[key] = ours | theirs
    return merged


def _rebase_rewrite(operation: Rewrite, newest: Manifest, vectors: DeletionVectors) -> Rebased | Retry:
    current = fragments_by_id(newest.fragments)
    highest = newest.max_fragment_id
    groups = []
    hidden: OffsetsByFragment = {}
    for group in operation.groups:
        new, highest = assign_fragment_ids(group.new_fragments, highest)  # the names of deletion files hold these ids
        groups.append(replace(group, new_fragments=new))
        rows = _rows_deleted_since(group, current, vectors)
        if not rows:
            continue
        remapped = remapped_offsets(group, rows, vectors)
        if isinstance(remapped, Retry):
            return remapped
        hidden |= {one.id: vectors.read(one) | offsets for one, offsets in zip(new, remapped, strict=True) if offsets}
    new_by_id = {fragment.id: fragment for group in groups for fragment in group.new_fragments}
    emptied = {key for key, vector in hidden.items() if len(vector) == new_by_id[key].physical_rows}
    files = vectors.write({key: vector for key, vector in hidden.items() if key not in emptied}, newest.version)
    # Emptied fragments are in no version, but they stay in the transaction: a remap through it counts their rows too.
    files |= {key: encode_deletion_vector(hidden[key], newest.version, _NO_FILE)[0] for key in emptied}
    segments = {index.uuid for index in newest.indices}
    kept = tuple(index for index in operation.rewritten_indices if index.old_id in segments)
    dropped = [index for index in operation.rewritten_indices if index.old_id not in segments]
    superseded = [path for key in emptied for path in new_by_id[key].data_paths()]
    superseded += [path for key in hidden if (path := new_by_id[key].deletion_path)]
    superseded += [path for index in dropped for path in index.paths()]
    groups = [_with_deletion_files(group, files) for group in groups]
    return Rebased(replace(operation, groups=tuple(groups), rewritten_indices=kept), tuple(superseded))


def _rebase_index(operation: CreateIndex, rewrites: Sequence[CommittedRewriteGroup]) -> Rebased:
    """Let segments of row ids cover the fragments that hold their rows now."""
    segments = []
    for segment in operation.new_indices:
        for old, new in (rewrite.fragment_ids for rewrite in rewrites):
            if segment.fragment_bitmap is not None:
                segment = replace(segment, fragment_bitmap=remapped_coverage(segment.fragment_bitmap, old, new))
        segments.append(segment)
    return Rebased(replace(operation, new_indices=tuple(segments)))


def _with_deletion_files(group: RewriteGroup, files: Mapping[int, DeletionFile]) -> RewriteGroup:
    new = (replace(one, deletion_file=files.get(one.id, one.deletion_file)) for one in group.new_fragments)
    return replace(group, new_fragments=tuple(new))


def _rows_deleted_since(
    group: RewriteGroup, current: Mapping[int, Fragment], vectors: DeletionVectors
) -> OffsetsByFragment:
    """Return the rows of a group's old fragments that were deleted after the rewrite read them."""
    touched = [fragment for fragment in group.old_fragments if not _has_same_rows(fragment, current)]
    vectors.read_ahead([*touched, *(current[fragment.id] for fragment in touched if fragment.id in current)])
    rows = {}
    for fragment in touched:
        now = current.get(fragment.id)
        live = _live_rows(fragment, vectors)
        rows[fragment.id] = live if now is None else live & vectors.read(now)
    return rows


def _has_same_rows(fragment: Fragment, current: Mapping[int, Fragment]) -> bool:
    """Return whether none of the fragment's rows was deleted or moved in the current version."""
    now = current.get(fragment.id)
    return now is not None and now.deletion_file == fragment.deletion_file


def _live_rows(fragment: Fragment, vectors: DeletionVectors) -> BitMap:
    return BitMap(range(fragment.physical_rows)) - vectors.read(fragment)

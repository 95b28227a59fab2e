"""Decide what happens to an operation when a concurrent one was committed first.

`judge` compares two footprints by rules that hold for any two operations. A small table lists the pairs that the
reference treats differently. The verdict is about our operation; theirs is committed. `rebase` does what a verdict asks
for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from lance_ops.core.records import dataclass
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.operation import Operation
from lance_ops.transactions.operations import DataReplacement, Delete, Merge, Overwrite, Project

__all__ = ["Compatible", "Incompatible", "Rebase", "Remap", "Retry", "RewrittenFragments", "Verdict", "judge"]

RewrittenFragments: TypeAlias = tuple[frozenset[int], frozenset[int]]
"""The ids of the fragments that a rewrite replaced, and of the fragments that hold their rows now."""


@dataclass(frozen=True, slots=True)
class Compatible:
    """Ours applies to the version that theirs made, unchanged."""


@dataclass(frozen=True, slots=True)
class Rebase:
    """Ours applies once its form of these fragments includes what theirs changed.

    Both deleted different rows, so that the deletion vectors are merged. Or both wrote different columns in place, so
    that the lists of files are.
    """

    fragment_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Remap:
    """Ours applies once its rows in these fragments are remapped to where a rewrite put them.

    One of the two deletes rows and the other rewrites the fragments. Or ours is a new index of row ids, which then
    covers the rewritten fragments.
    """

    fragment_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Retry:
    """Ours cannot be committed; the same work can succeed when it is planned again on the newest version."""

    reason: str


@dataclass(frozen=True, slots=True)
class Incompatible:
    """Ours cannot be committed, and only the user can decide whether to plan it again."""

    reason: str


Verdict: TypeAlias = Compatible | Rebase | Remap | Retry | Incompatible


def judge(ours: Operation, theirs: Operation | None, rewrites: Iterable[RewrittenFragments] = ()) -> Verdict:
    """Return the verdict on ours after theirs; a transaction that is missing (None) is a conflict.

    `rewrites` are the ones before theirs that ours is remapped through, in order.
    """
    if theirs is None:
        return Retry("a concurrent transaction is missing, so nobody knows what it touched")
    mine, other = ours.footprint(), theirs.footprint()
    for old, new in rewrites:
        mine = mine.remapped(old, new)
    verdict = next((verdict for rule in _RULES for verdict in rule(mine, other)), Compatible())
    irregular = _IRREGULAR.get((type(ours), type(theirs)))
    return irregular.instead_of(verdict) if irregular else verdict


@dataclass(frozen=True, slots=True)
class _Irregular:
    """A pair of operations for which a general verdict of one type is replaced by another verdict."""

    general: type[Verdict]
    replacement: Verdict

    def instead_of(self, verdict: Verdict) -> Verdict:
        return self.replacement if isinstance(verdict, self.general) else verdict


_IRREGULAR: dict[tuple[type[Operation], type[Operation]], _Irregular] = {
    # Both replace everything, so the later one could win, but neither writer saw the other's rows.
    (Overwrite, Overwrite): _Irregular(Compatible, Retry("another writer overwrote the table")),
    (Merge, Project): _Irregular(Retry, Incompatible("columns were dropped or renamed while ours changed columns")),
    (DataReplacement, Delete): _Irregular(Retry, Incompatible("a fragment that ours writes to lost all of its rows")),
}


def _unknown_operations_conflict_with_all(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if not (ours.is_known and theirs.is_known):
        yield Retry("this library does not know one of the two operations")


def _rows_that_ours_was_computed_from_do_not_change(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.reads_rows and theirs.changes_rows:
        yield Retry("rows or columns that ours was computed from were changed")


def _replacing_the_table_conflicts_only_in_keys(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.replaces_table:
        shared = ours.shared_keys(theirs)
        yield Retry(f"both set {_named(shared)}") if shared and not theirs.replaces_table else Compatible()


def _a_replaced_table_voids_changes_of_the_old_one(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if theirs.replaces_table and ours.needs_table:
        yield Incompatible("the table was replaced")


def _a_key_is_set_by_one_of_two(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    shared = ours.shared_keys(theirs)
    if shared:
        yield Incompatible(f"both set {_named(shared)}")
    if ours.bases & theirs.bases:
        yield Incompatible(f"both declare the base {min(ours.bases & theirs.bases)}")


def _schemas_change_one_at_a_time(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.schema and theirs.schema:
        yield Retry("the schema was changed")
    if ours.schema and theirs.metadata_keys:
        yield Retry("metadata of the schema was changed, and ours would undo this")


def _forbidding_nulls_conflicts_with_writing(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    for one, two in ((ours, theirs), (theirs, ours)):
        if one.forbids_nulls and (two.adds_rows or two.writes_values):
            yield Retry("the schema may forbid nulls that were written concurrently")


def _restated_fragments_do_not_change(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.restates_fragments and (theirs.fragments or theirs.adds_rows):
        yield Retry("fragments were added or changed, and ours restates all of them")
    if theirs.restates_fragments and (ours.fragments or ours.may_delete_rows):
        yield Retry("every fragment was restated")


def _a_dropped_fragment_must_not_change(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    remappable = _remappable(ours, theirs)
    gone = (ours.fragments & theirs.drops) - remappable
    if gone:
        yield Retry(f"{_fragments(gone)} left the table")
    changed = (ours.drops & theirs.fragments) - remappable
    if changed:
        yield Retry(f"{_fragments(changed)} changed after ours read it")


def _rows_do_not_move_while_values_are_written(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    written = frozenset(theirs.writes_values)
    stale = (ours.deletes_rows | ours.may_delete_rows | ours.moves_rows) & written
    if stale:
        yield Retry(f"{_fragments(stale)} got new values that ours did not read")
    lost = frozenset(ours.writes_values) & theirs.moves_rows
    if lost:
        yield Retry(f"rows of {_fragments(lost)}, which ours writes values to, moved to new fragments")
    for fragment_id in written.intersection(ours.writes_values):
        fields = theirs.writes_values[fragment_id]
        if ours.writes_values[fragment_id] & fields:
            yield Retry(f"the same field of fragment {fragment_id} got new values")
        if not fields and fragment_id not in ours.restates_files:  # only the lists of files show which columns
            yield Retry(f"fields of fragment {fragment_id} got new values, and theirs does not say which")


def _an_index_needs_its_addresses_and_values(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.index_names & theirs.index_names:
        yield Retry(f"index {min(ours.index_names & theirs.index_names)!r} was changed")
    if ours.index_ids & theirs.index_ids:
        yield Retry("a segment of an index was remapped or removed")
    for one, two in ((ours, theirs), (theirs, ours)):
        for segment in one.new_segments:
            keeps = segment.by_row_id and two.keeps_row_ids and segment.fragments is not None
            if segment.uuid not in two.index_ids and segment.covers_any(two.rewrites) and not keeps:
                yield Retry("a rewrite moved rows that a new index covers")
            written = frozenset(key for key, fields in two.writes_values.items() if fields & segment.fields)
            if segment.covers_any(written):
                yield Retry("values of a new index were changed")


def _a_key_that_ours_inserts_is_not_added_by_theirs(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    """Let a merge begin again if the other transaction may have added a primary key that the merge inserts.

    A transaction without a record of its keys may have added any key if it adds rows or writes a field of the key. A
    transaction of ours without such a record, as an append, is compared with nothing.
    """
    if ours.inserted_keys is None or ours.inserted_keys.is_empty:
        return
    if theirs.inserted_keys is not None:
        if ours.inserted_keys.may_share_a_key(theirs.inserted_keys):
            yield Retry("both may have inserted the same primary key")
        return
    keys = ours.inserted_keys.field_ids
    if theirs.adds_rows or any(not fields.isdisjoint(keys) for fields in theirs.writes_values.values()):
        yield Retry("rows or keys were added that may have a primary key which ours inserts")


def _rows_of_rewritten_fragments_are_remapped(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    segments = ours.new_segments
    covered = frozenset(key for part in segments for key in theirs.rewrites if part.covers_any(frozenset({key})))
    remapped = _remappable(ours, theirs) | covered
    if remapped:
        yield Remap(remapped)


def _changes_of_one_fragment_are_merged(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    deletions = (ours.deletes_rows & theirs.deletes_rows) | (ours.may_delete_rows & theirs.loses_rows)
    merged = deletions | (ours.restates_files & frozenset(theirs.writes_values))
    if merged:
        yield Rebase(merged)


_RULES: tuple[Callable[[Footprint, Footprint], Iterator[Verdict]], ...] = (
    _unknown_operations_conflict_with_all,
    _rows_that_ours_was_computed_from_do_not_change,
    _replacing_the_table_conflicts_only_in_keys,
    _a_replaced_table_voids_changes_of_the_old_one,
    _a_key_is_set_by_one_of_two,
    _schemas_change_one_at_a_time,
    _forbidding_nulls_conflicts_with_writing,
    _restated_fragments_do_not_change,
    _a_dropped_fragment_must_not_change,
    _rows_do_not_move_while_values_are_written,
    _an_index_needs_its_addresses_and_values,
    _a_key_that_ours_inserts_is_not_added_by_theirs,
    _rows_of_rewritten_fragments_are_remapped,
    _changes_of_one_fragment_are_merged,
)
"""The first rule that yields a verdict decides, so the rules for the worst conflicts come first."""


def _remappable(ours: Footprint, theirs: Footprint) -> frozenset[int]:
    """Return the fragments that one operation only deletes rows of and the other only rewrites."""
    one_each = (ours.loses_rows & theirs.rewrites) | (ours.rewrites & theirs.loses_rows)
    return one_each - frozenset(ours.writes_values) - frozenset(theirs.writes_values)


def _fragments(ids: frozenset[int]) -> str:
    return f"fragment {min(ids)}" if len(ids) == 1 else f"fragments {', '.join(map(str, sorted(ids)[:5]))}"


def _named(keys: frozenset[tuple[str, str]]) -> str:
    scope, key = min(keys)
    return f"{scope} key {key!r}"

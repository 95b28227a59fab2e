"""Who wins when two operations were planned on the same version.

`judge` compares footprints by rules that hold for any two operations; the few pairs that the reference treats by
convention stand in one table. The answer is about ours, the later one: theirs is committed. `rebase` does what the
verdict asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.operation import Operation
from lance_ops.transactions.operations import DataReplacement, Delete, Merge, Overwrite, Project

__all__ = ["Carry", "Compatible", "Incompatible", "Moved", "Rebase", "Retry", "Verdict", "judge"]

Moved: TypeAlias = tuple[frozenset[int], frozenset[int]]
"""The fragments that a rewrite replaced, and those that have their rows since."""


@dataclass(frozen=True, slots=True)
class Compatible:
    """Ours applies to what theirs left, as it is."""


@dataclass(frozen=True, slots=True)
class Rebase:
    """Ours applies once its deletion vectors for these fragments took in theirs, if the rows are not the same."""

    fragment_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Carry:
    """Ours applies once what it says of these fragments followed the rows to where a rewrite put them.

    One of the two deletes, the other rewrites: what ours deletes is in theirs' new fragments, or the other way round.
    Or ours is an index of row ids, which covers the new fragments then.
    """

    fragment_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Retry:
    """Ours is void; planned again on the newest version, the same work can succeed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Incompatible:
    """Ours is void, and planning it again makes no sense without asking the user."""

    reason: str


Verdict: TypeAlias = Compatible | Rebase | Carry | Retry | Incompatible


def judge(ours: Operation, theirs: Operation | None, moved: Iterable[Moved] = ()) -> Verdict:
    """Return what becomes of ours after theirs; None is a transaction that is missing, and so a conflict.

    `moved` are the rewrites before theirs that ours had to follow, in order.
    """
    if theirs is None:
        return Retry("a transaction since is missing, so nobody knows what it touched")
    mine, other = ours.footprint(), theirs.footprint()
    for old, new in moved:
        mine = mine.after(old, new)
    verdict = next((verdict for rule in _RULES for verdict in rule(mine, other)), Compatible())
    irregular = _IRREGULAR.get((type(ours), type(theirs)))
    return irregular.instead_of(verdict) if irregular else verdict


@dataclass(frozen=True, slots=True)
class _Irregular:
    """A pair for which the general rules' answer of one kind is replaced by another."""

    general: type[Verdict]
    replacement: Verdict

    def instead_of(self, verdict: Verdict) -> Verdict:
        return self.replacement if isinstance(verdict, self.general) else verdict


_IRREGULAR: dict[tuple[type[Operation], type[Operation]], _Irregular] = {
    # Both replace everything, so the later could just win; but neither writer saw the other's rows.
    (Overwrite, Overwrite): _Irregular(Compatible, Retry("the table was overwritten by another")),
    (Merge, Project): _Irregular(Retry, Incompatible("columns were dropped or renamed under new ones")),
    (DataReplacement, Delete): _Irregular(Retry, Incompatible("a fragment to get new values lost all of its rows")),
}


def _unknown_conflicts_with_all(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if not (ours.is_known and theirs.is_known):
        yield Retry("one of the two operations is not known to this library")


def _who_replaces_all_asks_nobody(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.replaces_table:
        shared = ours.shared_keys(theirs)
        yield Retry(f"both set {_named(shared)}") if shared and not theirs.replaces_table else Compatible()


def _a_replaced_table_is_another(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if theirs.replaces_table and ours.needs_table:
        yield Incompatible("the table was replaced")


def _keys_are_set_once(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    shared = ours.shared_keys(theirs)
    if shared:
        yield Incompatible(f"both set {_named(shared)}")
    if ours.bases & theirs.bases:
        yield Incompatible(f"both declare the base {min(ours.bases & theirs.bases)}")


def _schemas_change_one_at_a_time(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.schema and theirs.schema:
        yield Retry("the schema was changed")
    if ours.schema and theirs.metadata_keys:
        yield Retry("metadata of the schema was changed, which ours would set back")


def _nulls_may_be_forbidden(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    for one, two in ((ours, theirs), (theirs, ours)):
        if one.forbids_nulls and (two.adds_rows or two.writes):
            yield Retry("the schema may not allow nulls that were written meanwhile")


def _restated_fragments_stand_still(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.restates_fragments and (theirs.fragments or theirs.adds_rows):
        yield Retry("fragments were added or changed, and ours states all of them")
    if theirs.restates_fragments and (ours.fragments or ours.may_thin):
        yield Retry("every fragment was stated anew")


def _a_fragment_that_left_is_gone(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    carried = _carried(ours, theirs)
    gone = (ours.fragments & theirs.drops) - carried
    if gone:
        yield Retry(f"{_fragments(gone)} left the table")
    changed = (ours.drops & theirs.fragments) - carried
    if changed:
        yield Retry(f"{_fragments(changed)} changed since ours read it")


def _values_are_read_before_rows_move(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    written = frozenset(theirs.writes)
    stale = (ours.thins | ours.may_thin | ours.moves) & written
    if stale:
        yield Retry(f"{_fragments(stale)} got new values that ours did not see")
    lost = frozenset(ours.writes) & theirs.moves
    if lost:
        yield Retry(f"rows of {_fragments(lost)} moved away from ours")
    for fragment_id in written.intersection(ours.writes):
        if ours.writes[fragment_id] & theirs.writes[fragment_id]:
            yield Retry(f"the same field of fragment {fragment_id} got new values")


def _an_index_holds_addresses_and_values(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.index_names & theirs.index_names:
        yield Retry(f"index {min(ours.index_names & theirs.index_names)!r} was changed")
    if ours.index_ids & theirs.index_ids:
        yield Retry("a segment of an index was remapped or removed")
    for one, two in ((ours, theirs), (theirs, ours)):
        for part in one.indexed:
            keeps = part.by_row_id and two.keeps_row_ids and part.fragments is not None
            if part.segment not in two.index_ids and part.reaches(two.rewrites) and not keeps:
                yield Retry("rows of a new index were moved by a rewrite")
            written = frozenset(key for key, fields in two.writes.items() if fields & part.fields)
            if part.reaches(written):
                yield Retry("values of a new index were changed")


def _a_key_is_inserted_once(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    if ours.inserted_keys and theirs.inserted_keys and ours.inserted_keys.may_meet(theirs.inserted_keys):
        yield Retry("both may have inserted the same primary key")


def _what_is_said_of_rows_follows_them(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    covered = frozenset(key for part in ours.indexed for key in theirs.rewrites if part.reaches(frozenset({key})))
    carried = _carried(ours, theirs) | covered
    if carried:
        yield Carry(carried)


def _deletions_in_one_fragment_are_merged(ours: Footprint, theirs: Footprint) -> Iterator[Verdict]:
    merged = (ours.thins & theirs.thins) | (ours.may_thin & theirs.deletes)
    if merged:
        yield Rebase(merged)


_RULES: tuple[Callable[[Footprint, Footprint], Iterator[Verdict]], ...] = (
    _unknown_conflicts_with_all,
    _who_replaces_all_asks_nobody,
    _a_replaced_table_is_another,
    _keys_are_set_once,
    _schemas_change_one_at_a_time,
    _nulls_may_be_forbidden,
    _restated_fragments_stand_still,
    _a_fragment_that_left_is_gone,
    _values_are_read_before_rows_move,
    _an_index_holds_addresses_and_values,
    _a_key_is_inserted_once,
    _what_is_said_of_rows_follows_them,
    _deletions_in_one_fragment_are_merged,
)
"""The first that has something to say decides, so the gravest stand first."""


def _carried(ours: Footprint, theirs: Footprint) -> frozenset[int]:
    """Return the fragments that one only deletes from and the other only rewrites."""
    one_each = (ours.deletes & theirs.rewrites) | (ours.rewrites & theirs.deletes)
    return one_each - frozenset(ours.writes) - frozenset(theirs.writes)


def _fragments(ids: frozenset[int]) -> str:
    return f"fragment {min(ids)}" if len(ids) == 1 else f"fragments {', '.join(map(str, sorted(ids)[:5]))}"


def _named(keys: frozenset[tuple[str, str]]) -> str:
    scope, key = min(keys)
    return f"{scope} key {key!r}"

"""Tables whose data files are lists of numbers in memory, so that tests can track each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

from lance_ops.table import Fragment, IndexMetadata, Manifest
from lance_ops.transactions import (
    Append,
    CreateIndex,
    Delete,
    Overwrite,
    ReserveFragments,
    Rewrite,
    RewriteGroup,
    Transaction,
    Update,
    commit,
)
from tests.table.samples import SCHEMA
from tests.transactions.samples import new_fragment
from tests.transactions.tables import Table


class RowTable(Table):
    """A table whose rows are the numbers from 0 up. Operations are planned on a given manifest."""

    def __init__(self, fragments: int = 3, rows: int = 10) -> None:
        super().__init__(fragments=0)
        self._names, self._numbers = count(), count()
        self.values: dict[str, list[int]] = {}
        first = Overwrite(tuple(self.new(rows) for _ in range(fragments)), SCHEMA)
        commit(self.committer, self.store, Transaction(0, first))

    def new(self, rows: int) -> Fragment:
        """Return a fragment of new rows."""
        return self._holding([next(self._numbers) for _ in range(rows)])

    def rows(self, manifest: Manifest) -> list[int]:
        """Return the live rows of a version, in order."""
        return [number for fragment in manifest.fragments for number in self._live(manifest, fragment)]

    def commit_indices(self, *indices: IndexMetadata) -> None:
        """Add segments that have metadata and no files."""
        self.commit(CreateIndex(indices))

    def append(self, rows: int) -> Append:
        return Append((self.new(rows),))

    def deletion(self, planned: Manifest, numbers: Iterable[int]) -> Delete:
        """Return a deletion of those of these rows that exist."""
        wanted = set(numbers)
        found: dict[int, Iterable[int]] = {
            fragment.id: [at for at, number in enumerate(self.values[fragment.files[0].path]) if number in wanted]
            for fragment in planned.fragments
        }
        changed = {key: offsets for key, offsets in found.items() if set(offsets) - set(self.deleted(planned, key))}
        return self.delete(changed, planned.version)

    def update(self, planned: Manifest, numbers: Iterable[int]) -> tuple[Update, list[int]]:
        """Return an update that moves these rows, and their new numbers."""
        wanted = sorted(set(numbers) & set(self.rows(planned)))
        deletion, moved = self.deletion(planned, wanted), self.new(len(wanted))
        update = Update(deletion.deleted_fragment_ids, deletion.updated_fragments, (moved,))
        return update, self.values[moved.files[0].path]

    def rewrite(self, planned: Manifest, *groups: Iterable[int], rows: int = 1000, reserve: bool = True) -> Rewrite:
        """Return a rewrite of groups of fragments into new ones of at most `rows` rows."""
        rewritten = []
        for group in groups:
            old = tuple(fragment for key in group if (fragment := planned.fragment(key)) is not None)
            live = [number for fragment in old for number in self._live(planned, fragment)]
            new = tuple(self._holding(live[at : at + rows]) for at in range(0, len(live), rows))
            if reserve and new:
                top = self.commit(ReserveFragments(len(new))).manifest.max_fragment_id or 0
                new = tuple(replace(fragment, id=top - at) for at, fragment in enumerate(reversed(new)))[::-1]
            rewritten.append(RewriteGroup(old, new))
        return Rewrite(tuple(rewritten))

    def _live(self, manifest: Manifest, fragment: Fragment) -> list[int]:
        gone = self.deleted(manifest, fragment.id)
        return [number for at, number in enumerate(self.values[fragment.files[0].path]) if at not in gone]

    def _holding(self, numbers: list[int]) -> Fragment:
        fragment = new_fragment(f"n{next(self._names)}", len(numbers))
        self.values[fragment.files[0].path] = numbers
        return fragment

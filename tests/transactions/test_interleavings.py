"""Commit deletes, updates, rewrites and appends, planned on old versions, in any order; compare with sets of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest

from lance_ops.core.errors import RetryableConflict
from lance_ops.table import violations
from lance_ops.transactions import Operation, Rewrite, read_version
from tests.transactions.row_table import RowTable


@dataclass(frozen=True)
class Planned:
    """An operation, and the rows that it removes and adds."""

    operation: Operation
    version: int
    removed: frozenset[int] = frozenset()
    added: frozenset[int] = frozenset()


class Interleaving:
    """One random history: no row is lost, none returns, and every conflict has a reason."""

    def __init__(self, random: Random) -> None:
        self.random = random
        fragments, rows = random.randint(1, 5), random.randint(1, 12)
        self.table = RowTable(fragments, rows)
        self.rows = {1: frozenset(range(fragments * rows))}
        self.planned: list[Planned] = []
        self.committed: Counter[str] = Counter()

    def run(self, steps: int) -> None:
        """Take random steps; compare the newest version with the model after each, and every version at the end."""
        actions = (self.delete, self.delete, self.update, self.rewrite, self.append, *[self.commit] * 5)
        for _ in range(steps):
            self.random.choice(actions)()
            assert sorted(self.table.rows(self.table.newest)) == sorted(self.now)
        for version, rows in self.rows.items():
            assert sorted(self.table.rows(self.table.read(version))) == sorted(rows)

    @property
    def now(self) -> frozenset[int]:
        return self.rows[max(self.rows)]

    def delete(self) -> None:
        version, gone = self._pick_rows()
        if gone:
            self.planned.append(Planned(self.table.deletion(self.table.read(version), gone), version, gone))

    def update(self) -> None:
        version, gone = self._pick_rows()
        if gone:
            operation, come = self.table.update(self.table.read(version), gone)
            self.planned.append(Planned(operation, version, gone, frozenset(come)))

    def rewrite(self) -> None:
        planned = self.table.read(self._pick_version())
        ids = [fragment.id for fragment in planned.fragments]
        if not ids:
            return
        begin, middle, end = sorted(self.random.randint(0, len(ids)) for _ in range(3))
        groups = [group for group in (ids[begin:middle], ids[middle:end]) if group] or [ids]
        operation = self.table.rewrite(
            planned, *groups, rows=self.random.randint(2, 20), reserve=self.random.random() < 0.8
        )
        self._note(self.now)  # the rewrite may have committed a reservation of ids
        self.planned.append(Planned(operation, planned.version))

    def append(self) -> None:
        operation = self.table.append(self.random.randint(1, 5))
        come = frozenset(self.table.values[operation.fragments[0].files[0].path])
        self.table.commit(operation)
        self._note(self.now | come)

    def commit(self) -> None:
        if not self.planned:
            return
        planned = self.planned.pop(self.random.randrange(len(self.planned)))
        try:
            made = self.table.commit(planned.operation, planned.version)
        except RetryableConflict:
            assert self._has_reason(planned)
            return
        assert not self._has_reason(planned)
        self._note(self.now - planned.removed | planned.added)
        assert violations(made.manifest) == []
        self.committed["rebased" if made.transaction.operation != planned.operation else "as planned"] += 1

    def _pick_version(self) -> int:
        return max(1, max(self.rows) - self.random.randint(0, 6))

    def _pick_rows(self) -> tuple[int, frozenset[int]]:
        """Return a version, and some or all rows of one of its fragments."""
        planned = self.table.read(self._pick_version())
        if not planned.fragments:
            return planned.version, frozenset()
        values = self.table.values[self.random.choice(planned.fragments).files[0].path]
        chosen = values if self.random.random() < 0.2 else self.random.sample(values, min(len(values), 2))
        return planned.version, frozenset(chosen) & self.rows[planned.version]

    def _has_reason(self, planned: Planned) -> bool:
        """Return whether a row to delete is gone, or a concurrent rewrite replaced a fragment of ours."""
        if not isinstance(planned.operation, Rewrite):
            return not planned.removed <= self.now
        old = _old_ids(planned.operation)
        since = range(planned.version + 1, max(self.rows) + 1)
        concurrent = (read_version(self.table.store, self.table.committer, version).transaction for version in since)
        return any(one and isinstance(one.operation, Rewrite) and old & _old_ids(one.operation) for one in concurrent)

    def _note(self, rows: frozenset[int]) -> None:
        for version in range(max(self.rows) + 1, self.table.newest.version + 1):
            self.rows[version] = rows


def _old_ids(rewrite: Rewrite) -> set[int]:
    return {fragment.id for group in rewrite.groups for fragment in group.old_fragments}


def run_many(seeds: range, steps: int) -> None:
    committed: Counter[str] = Counter()
    for seed in seeds:
        interleaving = Interleaving(Random(seed))
        try:
            interleaving.run(steps)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
        committed += interleaving.committed
    assert committed["rebased"] > len(seeds)  # otherwise the test shows nothing


def test_a_few_interleavings() -> None:
    run_many(range(25), steps=50)


@pytest.mark.soak
def test_many_interleavings() -> None:
    run_many(range(25, 2000), steps=120)

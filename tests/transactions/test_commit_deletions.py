"""Concurrent deletions: both are committed, and no unneeded deletion file is left."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_ops.committers import CommitOutcome, PutIfAbsentCommitter
from lance_ops.core.errors import RetryableConflict
from lance_ops.core.file_names import DELETIONS_DIR
from lance_ops.store import MemoryStore
from lance_ops.transactions import Transaction, commit, read_version, versions_newest_first
from tests.transactions.tables import Table


def test_concurrent_deletions_of_different_rows_of_a_fragment_are_merged() -> None:
    table = Table()
    ours, theirs = table.delete({0: [1, 2], 1: [5]}), table.delete({0: [3]})
    table.commit(theirs, read_version=1)

    result = table.commit(ours, read_version=1)

    assert list(table.deleted(result.manifest, 0)) == [1, 2, 3]
    assert list(table.deleted(result.manifest, 1)) == [5]


def test_deletions_in_the_read_version_cause_no_conflict() -> None:
    table = Table()
    table.commit(table.delete({0: [9]}))
    ours, theirs = table.delete({0: [1]}), table.delete({0: [2]})
    table.commit(theirs, read_version=2)

    result = table.commit(ours, read_version=2)

    assert list(table.deleted(result.manifest, 0)) == [1, 2, 9]


def test_concurrent_deletions_of_the_same_row_conflict() -> None:
    table = Table()
    ours, theirs = table.delete({0: [1, 2]}), table.delete({0: [2]})
    table.commit(theirs, read_version=1)
    before = table.files("")

    with pytest.raises(RetryableConflict, match="1 rows of fragment 0 were deleted or updated by another"):
        table.commit(ours, read_version=1)

    assert table.files("") == before


def test_a_fragment_that_two_deletions_empty_together_is_dropped() -> None:
    table = Table()
    ours, theirs = table.delete({0: range(5)}), table.delete({0: range(5, 10)})
    table.commit(theirs, read_version=1)

    result = table.commit(ours, read_version=1)

    assert [fragment.id for fragment in result.manifest.fragments] == [1]


def test_a_rebased_transaction_names_the_committed_files_and_no_other_is_left() -> None:
    store = MemoryStore()
    table = Table(store)
    ours, first, second = (table.delete({0: [row]}) for row in (1, 2, 3))
    table.commit(first, read_version=1)

    class Racing(PutIfAbsentCommitter):
        has_raced = False

        def commit(self, version: int, data: bytes, **options: Any) -> CommitOutcome:
            if not self.has_raced:
                self.has_raced = True
                Table(store).commit(second, read_version=1)
            return super().commit(version, data, **options)

    result = commit(Racing(store), store, Transaction(1, ours))

    assert list(table.deleted(result.manifest, 0)) == [1, 2, 3]
    landed = read_version(store, table.committer, result.version)
    assert landed.transaction == result.transaction
    assert store.get(result.transaction.path) == pa.py_buffer(result.transaction.encode())
    named = {
        f"{DELETIONS_DIR}/{each.deletion_file.name(each.id)}"
        for past in versions_newest_first(store, table.committer)
        for each in past.manifest.fragments
        if each.deletion_file
    }
    assert table.files(DELETIONS_DIR) == named


def test_a_transaction_committed_twice_concurrently_leaves_one_deletion_file() -> None:
    table = Table()
    transaction = Transaction(1, table.delete({0: [1]}))
    table.commit(table.delete({0: [2]}, 1), 1)
    twin = PutIfAbsentCommitter(table.store)

    class Slow(PutIfAbsentCommitter):
        def commit(self, version: int, data: bytes, **options: Any) -> CommitOutcome:
            assert not commit(twin, table.store, transaction).replayed
            return super().commit(version, data, **options)

    assert commit(Slow(table.store), table.store, transaction).replayed
    named = {fragment.deletion_path for version in (2, 3) for fragment in table.read(version).fragments}
    assert table.files("_deletions") == named - {None}
    assert transaction.path in table.files("_transactions")

"""Threads of one process commit to a table one after the other."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.core.errors import TooManyConcurrentWriters
from lance_ops.store import FaultyStore, LocalStore
from lance_ops.transactions import Append, Transaction, commit
from lance_ops.transactions.committing.commit_lock import commit_lock
from tests.transactions.samples import new_fragment
from tests.transactions.tables import Table

WRITERS = 8


def append(name: str) -> Transaction:
    return Transaction(1, Append((new_fragment(name),)))


def test_concurrent_commits_of_threads_lose_no_race(tmp_path: Path) -> None:
    Table(LocalStore(str(tmp_path)))
    stores = [FaultyStore(LocalStore(str(tmp_path))) for _ in range(WRITERS)]
    begin = threading.Barrier(WRITERS)

    def write(store: FaultyStore) -> int:
        begin.wait()
        return commit(PutIfAbsentCommitter(store), store, append(str(id(store)))).version

    with ThreadPoolExecutor(WRITERS) as threads:
        assert sorted(threads.map(write, stores)) == list(range(2, WRITERS + 2))
    assert [call.operation for store in stores for call in store.calls].count("put_if_absent") == WRITERS


def test_a_lock_is_reentrant_and_excludes_other_threads_of_the_same_table() -> None:
    def try_it(table: str) -> bool:
        with commit_lock(table, 0.01) as is_locked:
            return is_locked

    with ThreadPoolExecutor(1) as other, commit_lock("a", 1.0) as mine, commit_lock("a", 0.0) as again:
        assert (mine, again) == (True, True)
        assert not other.submit(try_it, "a").result()
        assert other.submit(try_it, "b").result()
    assert try_it("a")


def test_a_commit_that_waits_too_long_for_the_lock_fails() -> None:
    table = Table()
    with ThreadPoolExecutor(1) as other, commit_lock(table.store.uri, 1.0):
        late = other.submit(commit, table.committer, table.store, append("a"), timeout_seconds=0.01)
        with pytest.raises(TooManyConcurrentWriters, match="in time"):
            late.result()
    assert table.newest.version == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the test forks while threads run
def test_a_forked_child_does_not_wait_for_a_lock_of_its_parent(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    table = Table(store)
    with ThreadPoolExecutor(1) as other, commit_lock(store.uri, 1.0):
        child = other.submit(_commit_in_a_child, table, append("a")).result()
    assert child == 0 and table.newest.version == 2


def _commit_in_a_child(table: Table, transaction: Transaction) -> int:
    child = os.fork()
    if not child:
        status = 1
        try:
            commit(table.committer, table.store, transaction, timeout_seconds=30)
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

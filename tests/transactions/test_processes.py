"""Processes append concurrently to one table on a local disk."""

from __future__ import annotations

import multiprocessing

from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.store import LocalStore
from lance_ops.transactions import Append, Transaction, commit
from tests.transactions.samples import new_fragment
from tests.transactions.tables import Table

WRITERS, COMMITS = 4, 10


def write(uri: str, writer: int) -> None:
    store = LocalStore(uri)
    committer = PutIfAbsentCommitter(store)
    for number in range(COMMITS):
        planned = committer.latest() or 0
        operation = Append((new_fragment(f"w{writer}n{number}"),))
        commit(committer, store, Transaction(planned, operation), max_retries=200)


def test_appends_of_many_processes_are_all_committed_without_a_gap(dataset_uri: str) -> None:
    table = Table(LocalStore(dataset_uri))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=write, args=(dataset_uri, writer)) for writer in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert [process.exitcode for process in processes] == [0] * WRITERS
    assert table.committer.versions() == list(range(1, 2 + WRITERS * COMMITS))
    names = [fragment.files[0].path for fragment in table.newest.fragments[2:]]
    assert sorted(names) == sorted(f"w{w}n{n}.lance" for w in range(WRITERS) for n in range(COMMITS))

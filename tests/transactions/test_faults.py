"""A store that fails at any one request of a commit, before, during or after it: no commit is lost or doubled.

An acknowledged commit is in the table once. A commit that failed for certain is not in the table, even after late
requests arrive, and leaves no file. A commit of unknown outcome is in the table at most once. In every case the table
can be read and written afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lance_ops.committers import PutIfAbsentCommitter
from lance_ops.committers.create_retries import CreateRetries
from lance_ops.core.errors import CommitStateUnknown, LanceOpsError
from lance_ops.store import Fault, FaultyStore, MemoryStore, SimulatedCrash, Store, When
from lance_ops.transactions import (
    Append,
    CommitResult,
    Operation,
    Transaction,
    commit,
    find_transaction,
    versions_newest_first,
)
from tests.transactions.samples import new_fragment
from tests.transactions.tables import Table


def append_over_another(table: Table) -> Operation:
    """Return an append that must be judged against a committed one."""
    table.commit(Append((new_fragment("theirs"),)))
    return Append((new_fragment("ours"),))


def deletion_over_another(table: Table) -> Operation:
    """Return a deletion whose vector must be merged with a committed one."""
    ours, theirs = table.delete({0: [1, 2]}), table.delete({0: [3]})
    table.commit(theirs)
    return ours


def effects(table: Table, uuid: str) -> int:
    return sum(
        version.transaction is not None and version.transaction.uuid == uuid
        for version in versions_newest_first(table.store, table.committer)
    )


def attempt(store: Store, operation: Operation) -> tuple[Transaction, CommitResult | BaseException]:
    """Commit an operation planned on version 1, with a committer that retries without a pause."""
    transaction = Transaction(1, operation)
    try:
        committer = PutIfAbsentCommitter(store, retries=CreateRetries(2, 0))
        return transaction, commit(committer, store, transaction)
    except (LanceOpsError, SimulatedCrash) as error:
        return transaction, error


def steps(plan: Callable[[Table], Operation]) -> int:
    """Return the number of requests of a commit without faults."""
    inner = MemoryStore()
    operation = plan(Table(inner))
    store = FaultyStore(inner)
    _, result = attempt(store, operation)
    assert isinstance(result, CommitResult)
    return len(store.calls)


CASES = [
    pytest.param(plan, step, when, crash, id=f"{plan.__name__}-{step}-{when.value}{'-crash' if crash else ''}")
    for plan in (append_over_another, deletion_over_another)
    for step in range(1, steps(plan) + 1)
    for when in When
    for crash in (False, True)
]


@pytest.mark.parametrize(("plan", "step", "when", "crash"), CASES)
def test_a_fault_at_any_request_loses_no_commit(
    plan: Callable[[Table], Operation], step: int, when: When, crash: bool
) -> None:
    inner = MemoryStore()
    table = Table(inner)
    operation = plan(table)
    before = {info.path for info in inner.list()}
    store = FaultyStore(inner, Fault(call=step, when=when, crash=crash))

    transaction, outcome = attempt(store, operation)
    store.deliver_late()

    landed = effects(table, transaction.uuid)
    match outcome:
        case CommitResult(version=version):
            assert landed == 1
            assert find_transaction(inner, table.committer, transaction.uuid) == version
        case CommitStateUnknown() | SimulatedCrash():
            assert landed <= 1
        case _:
            assert landed == 0
            written = {info.path for info in inner.list()} - before
            # A request that arrives after the commit gave up cannot be undone; no version names such a file.
            assert when is When.LATE or not written
    theirs, both = ([], []) if plan is append_over_another else ([3], [1, 2, 3])
    assert list(table.deleted(table.newest, 0)) == (both if landed else theirs)
    assert all(not table.deleted(table.newest, each.id) for each in list(table.newest.fragments)[1:])
    assert table.commit(Append((new_fragment("afterwards"),))).version == table.newest.version
    assert table.committer.versions() == list(range(1, table.newest.version + 1))

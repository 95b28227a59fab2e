"""A commit without a retry loop: the file of its transaction stays only where a version names it, or may name it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lance_ops.committers import CommitOutcome, Conflict, PutIfAbsentCommitter, Unknown
from lance_ops.core.errors import (
    CommitStateUnknown,
    DatasetAlreadyExists,
    InvalidInput,
    LanceOpsError,
    RetryableConflict,
    StoreError,
    WriteRefused,
)
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.store import Fault, FaultyStore, MemoryStore, Store, When
from lance_ops.transactions import (
    Append,
    Clone,
    Transaction,
    commit_clone,
    commit_detached,
    commit_past_unreadable,
)
from lance_ops.transactions.committing import single_commit
from tests.transactions.samples import new_fragment
from tests.transactions.tables import Table

Answer = CommitOutcome | Exception


class Answering(PutIfAbsentCommitter):
    """Answers a commit without trying it."""

    def __init__(self, store: Store, answer: Answer) -> None:
        super().__init__(store)
        self.answer = answer

    def commit(self, version: int, data: bytes, **_: object) -> CommitOutcome:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def detached(source: Table, target: Store, answer: Answer) -> None:
    commit_detached(Answering(target, answer), target, Transaction(1, Append((new_fragment("ours"),))))


def past_unreadable(source: Table, target: Store, answer: Answer) -> None:
    commit_past_unreadable(Answering(target, answer), target, source.read(1), 2)


def clone(source: Table, target: Store, answer: Answer) -> None:
    of_source = Clone(is_shallow=True, ref_version=1, ref_path=source.store.uri)
    commit_clone(Answering(target, answer), target, Transaction(1, of_source), source.read(1))


COMMITS: list[tuple[Callable[[Table, Store, Answer], None], type[LanceOpsError]]] = [
    (detached, RetryableConflict),
    (past_unreadable, RetryableConflict),
    (clone, DatasetAlreadyExists),
]
"""Each way to commit once, and its error if another writer has the version."""


@pytest.fixture
def source() -> Table:
    return Table()


def new_transaction_files(source: Table, target: Store, run: Callable[[], None], error: type[Exception]) -> int:
    before = {info.path for info in target.list(TRANSACTIONS_DIR)}
    with pytest.raises(error):
        run()
    return len({info.path for info in target.list(TRANSACTIONS_DIR)} - before)


def target_of(make: Callable[..., None], source: Table) -> Store:
    return MemoryStore() if make is clone else source.store


@pytest.mark.parametrize(("make", "error"), COMMITS)
def test_a_lost_race_leaves_no_transaction_file(
    source: Table, make: Callable[[Table, Store, Answer], None], error: type[LanceOpsError]
) -> None:
    target = target_of(make, source)
    theirs = Conflict(2, source.committer.read(1))
    assert new_transaction_files(source, target, lambda: make(source, target, theirs), error) == 0


@pytest.mark.parametrize(("make", "_"), COMMITS)
@pytest.mark.parametrize("refusal", [WriteRefused("no"), RetryableConflict("locked")], ids=["refused", "locked"])
def test_a_refused_commit_raises_the_refusal_and_leaves_no_transaction_file(
    source: Table, make: Callable[[Table, Store, Answer], None], _: object, refusal: LanceOpsError
) -> None:
    target = target_of(make, source)
    assert new_transaction_files(source, target, lambda: make(source, target, refusal), type(refusal)) == 0


@pytest.mark.parametrize(("make", "_"), COMMITS)
def test_a_refusal_is_raised_even_if_the_transaction_file_cannot_be_deleted(
    source: Table, make: Callable[[Table, Store, Answer], None], _: object
) -> None:
    target = FaultyStore(target_of(make, source), Fault("delete", call=None))
    assert new_transaction_files(source, target, lambda: make(source, target, WriteRefused("no")), WriteRefused) == 1


@pytest.mark.parametrize(("make", "_"), COMMITS)
@pytest.mark.parametrize("answer", [Unknown(2, "timed out"), StoreError("timed out")], ids=["unknown", "failed"])
def test_after_an_unknown_outcome_the_transaction_file_stays(
    source: Table, make: Callable[[Table, Store, Answer], None], _: object, answer: Answer
) -> None:
    target = target_of(make, source)
    assert new_transaction_files(source, target, lambda: make(source, target, answer), CommitStateUnknown) == 1


@pytest.mark.parametrize(("make", "_"), COMMITS)
@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
def test_a_transaction_file_that_cannot_be_written_is_removed_and_is_a_definite_failure(
    source: Table, make: Callable[[Table, Store, Answer], None], _: object, when: When
) -> None:
    target = FaultyStore(target_of(make, source), Fault("put", f"{TRANSACTIONS_DIR}/*", when=when))
    assert new_transaction_files(source, target, lambda: make(source, target, Unknown(2, "")), StoreError) == 0


@pytest.mark.parametrize(("make", "_"), COMMITS)
def test_a_manifest_that_cannot_be_encoded_is_a_definite_failure(
    source: Table, make: Callable[[Table, Store, Answer], None], _: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> bytes:
        raise InvalidInput("too long")

    target = target_of(make, source)
    monkeypatch.setattr(single_commit, "encode_manifest", fails)
    assert new_transaction_files(source, target, lambda: make(source, target, Unknown(2, "")), InvalidInput) == 0

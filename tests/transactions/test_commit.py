"""The commit loop: which commit wins, which files are left, and what an unknown outcome means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from lance_ops.committers import CommitOutcome, PutIfAbsentCommitter, Unknown
from lance_ops.committers.version_hint import VERSION_HINT_PATH
from lance_ops.core.errors import (
    CommitStateUnknown,
    CorruptFile,
    DatasetAlreadyExists,
    DatasetNotFound,
    IncompatibleTransaction,
    InvalidInput,
    RetryableConflict,
    StoreError,
    TooManyConcurrentWriters,
    UnsupportedFeature,
    VersionNotFound,
    WriteRefused,
)
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.store import Fault, FaultyStore, LocalStore, MemoryStore, When
from lance_ops.store.faulty import Call
from lance_ops.table import encode_manifest
from lance_ops.transactions import (
    Append,
    CreateIndex,
    Merge,
    Overwrite,
    PendingFiles,
    Restore,
    Transaction,
    commit,
    commit_past_unreadable,
    find_transaction,
    read_version,
    versions_newest_first,
)
from lance_ops.transactions.committed.tokens import BATCH_PREFIX
from tests.fleeting_store import FleetingStore
from tests.table.samples import SCHEMA, index
from tests.transactions.samples import OVERWRITE, create_index, new_fragment, rewrite, set_config
from tests.transactions.tables import Table

T = TypeVar("T")


def append(name: str) -> Append:
    return Append((new_fragment(name),))


class RacingCommitter(PutIfAbsentCommitter):
    """Lets another writer commit first, the given number of times."""

    def __init__(self, store: MemoryStore, races: int) -> None:
        super().__init__(store)
        self.store = store
        self.races = races

    def commit(self, version: int, data: bytes, **options: Any) -> CommitOutcome:
        if self.races:
            self.races -= 1
            rival = Table(self.store)
            rival.commit(append(f"rival{self.races}"))
        return super().commit(version, data, **options)


class TestAlone:
    def test_files_that_a_version_names_are_durable_before_it_exists(self) -> None:
        store = FleetingStore()
        table = Table(store)
        store.put("data/a", b"x", durable=False)
        transaction = Transaction(1, append("a"))

        commit(table.committer, store, transaction, after=["data/a"])

        assert store.exists(transaction.path)
        assert store.lost_with == {
            table.committer.location(1): frozenset(),
            table.committer.location(2): {transaction.path},  # not durable: the manifest holds a copy
        }

    @pytest.mark.parametrize(
        "left", [None, b"", b"\0" * 99, b"\x08\x01\x12\x24half"], ids=["none", "no", "zero", "half"]
    )
    def test_a_damaged_transaction_file_after_a_power_cut_does_not_hide_a_conflict(self, left: bytes | None) -> None:
        table = Table()
        batch = {f"{BATCH_PREFIX}day": "1"}
        theirs = table.commit(append("theirs"), properties=batch).transaction
        if left is None:
            table.store.delete(theirs.path)
        else:
            table.store.put(theirs.path, left)

        assert read_version(table.store, table.committer, 2).transaction == theirs
        assert table.commit(append("a"), read_version=1).version == 3
        with pytest.raises(RetryableConflict, match="both add batch"):
            table.commit(append("b"), read_version=1, properties=batch)
        assert find_transaction(table.store, table.committer, theirs.uuid) == 2

    @pytest.mark.parametrize("creates", [True, False], ids=["creation", "append"])
    def test_a_commit_lists_versions_once_before_and_once_after(self, creates: bool, tmp_path: Path) -> None:
        local = LocalStore(str(tmp_path))  # lists names in no order, and writes the version hint
        base = None if creates else Table(local).newest
        store = FaultyStore(local)
        operation = OVERWRITE if creates else append("a")
        transaction = Transaction(0 if creates else 1, operation)

        commit(PutIfAbsentCommitter(store), store, transaction, base=base)

        looks = [call for call in store.calls if call.operation in ("list_names", "exists", "size", "get")]
        looks = [call for call in looks if call.path != VERSION_HINT_PATH]
        listing, legacy = Call("list_names", "_versions"), Call("get", "_latest.manifest")
        same = [Call("exists", f"_transactions/{base.transaction_file}")] if base else []
        assert looks == [listing, *(same or [legacy]), listing, *same]

    @pytest.mark.parametrize("where", ["memory", "disk"])
    def test_a_manifest_that_breaks_an_invariant_is_not_committed_and_leaves_no_file(
        self, where: str, tmp_path: Path
    ) -> None:
        table = Table(LocalStore(str(tmp_path)) if where == "disk" else MemoryStore())
        table.commit(append("a"))
        before = table.files("")

        with pytest.raises(InvalidInput, match="a data file belongs to one fragment"):
            table.commit(append("a"))
        assert table.files("") == before
        assert list(table.store.list_temporary()) == []

    def test_a_transaction_that_cannot_be_written_is_a_definite_failure(self, tmp_path: Path) -> None:
        inner = LocalStore(str(tmp_path))
        table = Table(inner)
        before = table.files("")
        store = FaultyStore(inner, Fault("put_hint", "_transactions/*"))

        with pytest.raises(StoreError, match=r"put_hint .*_transactions/.* simulated failure"):
            commit(PutIfAbsentCommitter(store), store, Transaction(1, append("a")))
        assert table.files("") == before
        assert list(inner.list_temporary()) == []

    def test_the_next_version_holds_the_operation_and_its_transaction(self) -> None:
        table = Table()

        result = table.commit(append("a"))

        assert (result.version, result.replayed) == (2, False)
        assert table.newest == result.manifest
        landed = read_version(table.store, table.committer, 2)
        assert landed.transaction == result.transaction

    def test_the_transactions_file_and_the_inline_section_are_the_same_bytes(self) -> None:
        table = Table()

        transaction = table.commit(append("a")).transaction

        data = table.store.get(transaction.path).to_pybytes()
        assert data == transaction.encode()
        assert data in table.committer.read(2).to_pybytes()

    def test_the_transactions_file_is_there_before_the_manifest(self) -> None:
        store = FaultyStore(MemoryStore())
        Table(store).commit(append("a"))

        writes = [call.path for call in store.calls if call.operation in ("put_hint", "put_if_absent")]
        of_version_2 = [
            path for path in writes if path.startswith((f"{TRANSACTIONS_DIR}/1-", "_versions/1844674407370955161"))
        ]
        assert of_version_2[-2].startswith(TRANSACTIONS_DIR)
        assert of_version_2[-1].endswith("13.manifest")

    def test_creating_a_table_makes_version_1(self) -> None:
        table = Table(fragments=3)

        assert table.newest.version == 1
        assert [fragment.id for fragment in table.newest.fragments] == [0, 1, 2]

    def test_a_restore_makes_an_old_version_the_newest(self) -> None:
        table = Table()
        table.commit(append("a"))

        result = table.commit(Restore(1))

        assert (result.version, len(result.manifest.fragments)) == (3, 2)
        assert result.manifest.max_fragment_id == 2


class TestConcurrent:
    def test_an_append_that_lost_races_commits_after_the_winners(self) -> None:
        store = MemoryStore()
        Table(store)
        table = Table(store, RacingCommitter(store, races=3))

        result = table.commit(append("a"))

        assert result.version == 5
        assert len(result.manifest.fragments) == 2 + 3 + 1

    def test_versions_committed_before_the_first_attempt_are_judged(self) -> None:
        table = Table()
        for name in "abc":
            table.commit(append(name), read_version=1)

        assert [fragment.files[0].path for fragment in table.newest.fragments[2:]] == ["a.lance", "b.lance", "c.lance"]

    def test_a_retryable_conflict_names_both_operations(self) -> None:
        table = Table()
        table.commit(rewrite(0))

        with pytest.raises(
            RetryableConflict, match=r"Rewrite planned on version 1 .* version 2, made by Rewrite: fragment 0 left"
        ):
            table.commit(rewrite(0, 1), read_version=1)

    def test_an_incompatible_transaction_names_both_operations(self) -> None:
        table = Table()
        table.commit(OVERWRITE)

        with pytest.raises(IncompatibleTransaction, match="the table was replaced. The two are incompatible"):
            table.commit(append("a"), read_version=1)

    def test_too_many_lost_races_end_the_commit(self) -> None:
        store = MemoryStore()
        Table(store)
        committer = RacingCommitter(store, races=9)

        with pytest.raises(TooManyConcurrentWriters, match="lost 3 races"):
            commit(committer, store, Transaction(1, append("a")), max_retries=2)

    def test_too_long_a_wait_ends_the_commit(self) -> None:
        store = MemoryStore()
        Table(store)
        committer = RacingCommitter(store, races=9)

        with pytest.raises(TooManyConcurrentWriters, match="in time"):
            commit(committer, store, Transaction(1, append("a")), timeout_seconds=0)

    def test_two_concurrent_creations_make_one_table(self) -> None:
        table = Table()

        with pytest.raises(DatasetAlreadyExists):
            table.commit(Overwrite((new_fragment("x"),), SCHEMA), read_version=0)

    def test_appends_of_many_threads_are_all_committed_without_a_gap(self) -> None:
        table = Table()

        def work(worker: int) -> None:
            for number in range(5):
                planned = table.newest.version
                transaction = Transaction(planned, append(f"w{worker}n{number}"))
                commit(PutIfAbsentCommitter(table.store), table.store, transaction, max_retries=200)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))

        assert table.committer.versions() == list(range(1, 42))
        paths = Counter(fragment.files[0].path for fragment in table.newest.fragments)
        assert len(paths) == 2 + 40
        assert set(paths.values()) == {1}
        times = [landed.manifest.timestamp_ns or 0 for landed in versions_newest_first(table.store, table.committer)]
        assert times == sorted(times, reverse=True)


class TestRefusals:
    def test_a_definite_failure_leaves_no_transaction_file(self) -> None:
        table = Table()
        table.commit(rewrite(0))
        before = table.files(TRANSACTIONS_DIR)

        with pytest.raises(RetryableConflict):
            table.commit(rewrite(0), read_version=1)

        assert table.files(TRANSACTIONS_DIR) == before

    def test_a_result_that_breaks_an_invariant_is_not_committed(self) -> None:
        table = Table()
        before = table.files("")

        with pytest.raises(InvalidInput, match="indexed fields exist"):
            table.commit(CreateIndex((index(1, fields=(77,)),)))

        assert table.files("") == before

    def test_a_commit_planned_on_a_version_that_was_cleaned_up_is_retryable(self) -> None:
        table = Table()
        planned = table.newest
        table.commit(append("a"))
        table.committer.remove(1)

        with pytest.raises(RetryableConflict, match="version 1, which Append was planned on, was cleaned up"):
            table.commit(append("b"), read_version=1)
        with pytest.raises(RetryableConflict, match="cleaned up"):
            commit(table.committer, table.store, Transaction(1, append("b")), base=planned)

    def test_the_last_version_has_no_next_one(self) -> None:
        table = Table()
        last = replace(table.newest, version=2**63 - 1)
        table.committer.commit(last.version, encode_manifest(last, Transaction(1, set_config("k")).encode()))
        before = table.files("")

        with pytest.raises(InvalidInput, match="no version can follow version 9223372036854775807"):
            table.commit(append("a"))
        with pytest.raises(InvalidInput, match="no version can follow"):
            commit_past_unreadable(table.committer, table.store, table.read(1), last.version)
        assert table.files("") == before and table.newest.version == last.version

    def test_a_gap_in_the_concurrent_versions_is_a_conflict(self) -> None:
        table = Table()
        table.commit(append("a"))
        table.commit(append("b"))
        table.committer.remove(2)

        with pytest.raises(RetryableConflict, match="version 2 was cleaned up before Append could be compared"):
            table.commit(append("c"), read_version=1)

    def test_a_missing_table_is_named(self) -> None:
        with pytest.raises(DatasetNotFound):
            Table(fragments=0).commit(append("a"), read_version=1)

    def test_a_missing_version_to_restore_is_named(self) -> None:
        with pytest.raises(VersionNotFound):
            Table().commit(Restore(7))

    def test_a_table_that_needs_a_newer_writer_is_not_changed(self) -> None:
        table = Table()
        newer = replace(table.newest, version=2, writer_feature_flags=1 << 20)
        table.committer.commit(2, encode_manifest(newer, Transaction(1, set_config("k")).encode()))

        with pytest.raises(UnsupportedFeature, match="bit 20"):
            table.commit(append("a"))
        assert table.committer.latest() == 2

    def test_a_manifest_under_the_name_of_another_version_is_corrupt(self) -> None:
        table = Table()
        table.committer.commit(2, table.committer.read(1).to_pybytes())

        with pytest.raises(CorruptFile, match="has version 1"):
            table.commit(append("a"), read_version=1)

    def test_a_missing_concurrent_transaction_is_a_conflict(self) -> None:
        table = Table()
        silent = replace(table.newest, version=2, transaction_file="")
        table.committer.commit(2, encode_manifest(silent, b""))

        with pytest.raises(RetryableConflict, match="made by a missing transaction"):
            table.commit(append("a"), read_version=1)

    def test_a_transaction_that_is_only_in_its_file_is_judged(self) -> None:
        table = Table()
        transaction = Transaction(1, append("other"))
        table.store.put(transaction.path, transaction.encode())
        outside = replace(table.newest, version=2, transaction_file=transaction.file_name)
        table.committer.commit(2, encode_manifest(outside, b""))

        assert table.commit(append("a"), read_version=1).version == 3

    def test_a_refused_write_is_a_definite_failure(self) -> None:
        class Refusing(PutIfAbsentCommitter):
            def commit(self, version: int, data: bytes, **options: Any) -> CommitOutcome:
                raise WriteRefused("no")

        table = Table()
        before = table.files("")

        with pytest.raises(WriteRefused):
            commit(Refusing(table.store), table.store, Transaction(1, append("a")))
        assert table.files("") == before


class TestDoubt:
    @pytest.mark.parametrize("raises", [False, True])
    def test_an_unknown_outcome_deletes_nothing(self, raises: bool) -> None:
        class Doubtful(PutIfAbsentCommitter):
            def commit(self, version: int, data: bytes, **options: Any) -> CommitOutcome:
                assert options["prepare"]()
                if raises:
                    raise StoreError("the line went dead")
                return Unknown(version, "the line went dead")

        table = Table()
        transaction = Transaction(1, append("a"))

        with pytest.raises(CommitStateUnknown, match="the line went dead") as caught:
            commit(Doubtful(table.store), table.store, transaction)

        assert (caught.value.uuid, caught.value.version) == (transaction.uuid, 2)
        assert transaction.path in table.files(TRANSACTIONS_DIR)

    @pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
    def test_a_commit_whose_answer_was_lost_is_recognised(self, when: When) -> None:
        inner = MemoryStore()
        Table(inner)
        store = FaultyStore(inner, Fault("put_if_absent", "_versions/*", when=when))

        result = Table(store).commit(append("a"))

        assert result.version == 2
        assert Table(inner).newest == result.manifest

    def test_an_unexpected_error_after_the_commit_keeps_what_the_version_names(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = Table()
        transaction = Transaction(1, append("a"))
        is_written = PutIfAbsentCommitter.commit

        def and_run_out_of_memory(self: PutIfAbsentCommitter, version: int, data: bytes, **options: Any) -> object:
            outcome = is_written(self, version, data, **options)
            monkeypatch.setattr(PutIfAbsentCommitter, "latest", fails)
            return outcome

        def fails(*_: object) -> None:
            raise MemoryError

        monkeypatch.setattr(PutIfAbsentCommitter, "commit", and_run_out_of_memory)
        pending = PendingFiles.at(table.store, ["data/a.lance"])
        table.store.put("data/a.lance", b"x")
        with pytest.raises(CommitStateUnknown, match="MemoryError") as caught, pending.abandoned_unless_committed():
            commit(table.committer, table.store, transaction)

        monkeypatch.undo()
        assert (caught.value.uuid, caught.value.version) == (transaction.uuid, 2) and table.newest.version == 2
        assert table.store.exists("data/a.lance") and table.store.exists(transaction.path)

    def test_a_check_after_the_commit_needs_no_thread(self) -> None:
        class WithoutThreads(MemoryStore):
            def begin_call(self, call: Callable[[], T]) -> Callable[[], T]:
                if len(self.list_names("_versions")) > 1:
                    raise RuntimeError("can't start new thread")
                return call

        table = Table(WithoutThreads())

        assert table.commit(append("a")).version == table.newest.version == 2

    def test_a_transaction_committed_twice_is_replayed(self) -> None:
        table = Table()
        transaction = Transaction(1, append("a"))
        first = commit(table.committer, table.store, transaction)
        table.commit(append("b"))

        again = commit(table.committer, table.store, transaction)

        assert (again.version, again.replayed) == (first.version, True)
        assert again.manifest == first.manifest
        assert transaction.path in table.files(TRANSACTIONS_DIR)

    def test_a_creation_committed_twice_is_replayed(self) -> None:
        table = Table(fragments=0)
        transaction = Transaction(0, Overwrite((new_fragment("a"),), SCHEMA))
        commit(table.committer, table.store, transaction)

        assert commit(table.committer, table.store, transaction).replayed

    def test_find_transaction_returns_its_version(self) -> None:
        table = Table()
        transaction = table.commit(append("a")).transaction
        table.commit(append("b"))

        assert find_transaction(table.store, table.committer, transaction.uuid) == 2
        assert find_transaction(table.store, table.committer, transaction.uuid, since=3) is None
        assert find_transaction(table.store, table.committer, "another") is None


@pytest.mark.parametrize(("covers", "lands"), [((0,), False), ((1,), True)])
def test_an_index_of_values_that_a_concurrent_merge_moved_to_another_file_is_retryable(
    covers: tuple[int, ...], lands: bool
) -> None:
    table = Table()
    first, *others = table.newest.fragments
    moved = replace(first, files=tuple(replace(file, path="other.lance") for file in first.files))
    table.commit(Merge((moved, *others), SCHEMA, preserves_nullability=True))

    if lands:
        assert table.commit(create_index("i", covers), 1).version == 3
    else:
        with pytest.raises(RetryableConflict, match="values of a new index"):
            table.commit(create_index("i", covers), 1)

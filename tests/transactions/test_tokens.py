"""Work is committed once, by tokens and batches in the transactions' properties."""

from __future__ import annotations

import pytest

from lance_ops.core.errors import CommitStateUnknown, CorruptFile, RetryableConflict
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.transactions import (
    BATCH_PREFIX,
    REPLACES_PREFIX,
    TOKEN,
    Append,
    Overwrite,
    Restore,
    find_token,
    read_version,
    save_token,
)
from lance_ops.transactions.committed.tokens import TOKENS_DIR
from tests.table.samples import SCHEMA
from tests.transactions.samples import new_fragment
from tests.transactions.tables import Table


def append(name: str) -> Append:
    return Append((new_fragment(name),))


def test_a_commit_with_a_committed_token_is_replayed() -> None:
    table = Table()
    first = table.commit(append("a"), properties={TOKEN: "t"})
    table.commit(append("b"))
    before = table.files("")

    again = table.commit(append("a again"), read_version=1, properties={TOKEN: "t"})

    assert (again.version, again.replayed) == (first.version, True)
    assert again.transaction == first.transaction
    assert table.files("") == before


def test_commits_with_different_tokens_do_not_conflict() -> None:
    table = Table()
    table.commit(append("a"), properties={TOKEN: "t"})

    assert table.commit(append("b"), read_version=1, properties={TOKEN: "u"}).version == 3


def test_a_creation_with_a_committed_token_is_replayed() -> None:
    table = Table(fragments=0)
    for name in "ab":
        made = table.commit(Overwrite((new_fragment(name),), SCHEMA), read_version=0, properties={TOKEN: "t"})

    assert (made.version, made.replayed) == (1, True)
    assert table.committer.versions() == [1]


def test_concurrent_commits_of_the_same_batch_conflict() -> None:
    table = Table()
    table.commit(append("a"), properties={f"{BATCH_PREFIX}2024-01-01": "x", f"{BATCH_PREFIX}2024-01-02": "x"})

    with pytest.raises(RetryableConflict, match="both add batch '2024-01-02'"):
        table.commit(
            append("b"), read_version=1, properties={f"{BATCH_PREFIX}2024-01-02": "y", f"{BATCH_PREFIX}2024-01-03": "x"}
        )
    assert table.commit(append("c"), read_version=1, properties={f"{BATCH_PREFIX}2024-01-04": "x"}).version == 3


def test_concurrent_replacements_of_the_same_key_conflict() -> None:
    table = Table()
    table.commit(append("a"), properties={f"{REPLACES_PREFIX}day=1": "", f"{REPLACES_PREFIX}day=2": ""})

    with pytest.raises(RetryableConflict, match="both replace 'day=2'. Plan it again"):
        table.commit(append("b"), 1, {f"{REPLACES_PREFIX}day=2": "", f"{REPLACES_PREFIX}day=3": ""})
    assert table.commit(append("c"), 1, {f"{REPLACES_PREFIX}day=3": "", f"{BATCH_PREFIX}day=1": "x"}).version == 3
    assert table.commit(append("d"), 1).version == 4
    assert table.commit(append("e"), 2, {f"{REPLACES_PREFIX}day=1": ""}).version == 5


def test_a_token_is_found_after_its_version_was_cleaned_up() -> None:
    table = Table()
    table.commit(append("a"), properties={TOKEN: "t"})
    table.commit(append("b"))

    for version in (1, 2):
        save_token(table.store, read_version(table.store, table.committer, version))
        table.committer.remove(version)

    assert find_token(table.store, table.committer, "t") == 2
    assert find_token(table.store, table.committer, "u") is None
    assert len(table.files(TOKENS_DIR)) == 1


def found_after(table: Table, *operations: Append | Overwrite | Restore) -> int | None:
    for operation in operations:
        table.commit(operation)
    return find_token(table.store, table.committer, "t")


def test_a_token_counts_as_long_as_no_restore_or_overwrite_took_its_version_out() -> None:
    table = Table()
    table.commit(append("a"), properties={TOKEN: "t"})
    assert found_after(table, append("b"), Restore(2)) == 2, "it was restored itself"
    assert found_after(table, Restore(1)) is None
    assert found_after(table, append("c")) is None
    assert found_after(table, Restore(3)) == 2, "a restore brought it back"
    assert found_after(table, Overwrite((new_fragment("d"),), SCHEMA)) is None
    table.commit(append("a again"), properties={TOKEN: "t"})
    assert found_after(table, append("e")) == 9
    assert found_after(table, Restore(7)) == 2, "the second one was taken out, and the first one is back"


def test_a_token_of_a_restore_or_an_overwrite_counts() -> None:
    table = Table()
    table.commit(Restore(1), properties={TOKEN: "t"})
    assert found_after(table, append("a")) == 2
    table.commit(Overwrite((new_fragment("b"),), SCHEMA), properties={TOKEN: "t"})
    assert found_after(table, append("c")) == 4


def test_a_saved_token_does_not_count_after_a_restore_to_before_its_version() -> None:
    table = Table()
    table.commit(append("a"), properties={TOKEN: "t"})
    table.commit(append("b"))
    save_token(table.store, read_version(table.store, table.committer, 2))
    assert found_after(table, Restore(1)) is None
    for version in (1, 2, 3):
        table.committer.remove(version)
    assert found_after(table) is None


def test_a_saved_token_counts_after_a_retained_overwrite_before_its_version() -> None:
    table = Table()
    table.commit(Overwrite((new_fragment("a"),), SCHEMA))
    table.commit(append("b"), properties={TOKEN: "t"})
    assert found_after(table, append("c"), append("d")) == 3
    save_token(table.store, read_version(table.store, table.committer, 3))
    for version in (1, 3, 4):
        table.committer.remove(version)
    assert found_after(table) == 3
    assert found_after(table, Restore(2)) is None


def test_a_restore_that_clean_up_left_without_evidence_is_no_answer() -> None:
    table = Table()
    table.commit(append("a"), properties={TOKEN: "t"})
    assert found_after(table, Restore(1), append("b"), append("c")) is None
    table.committer.remove(4)
    with pytest.raises(CommitStateUnknown, match="as version 3.*removed the evidence"):
        found_after(table)
    table.commit(Restore(1))
    assert found_after(table) is None, "a later restore tells"


def test_a_token_in_a_transaction_file_without_a_version_is_not_found() -> None:
    table = Table()
    lost = table.commit(append("a"), properties={TOKEN: "t"}).transaction
    table.commit(append("b"))
    table.committer.remove(2)

    assert lost.path in table.files(TRANSACTIONS_DIR)
    assert find_token(table.store, table.committer, "t") is None


def test_a_damaged_saved_token_is_corrupt() -> None:
    table = Table()
    table.commit(append("a"), properties={TOKEN: "t"})
    save_token(table.store, read_version(table.store, table.committer, 2))
    (path,) = table.files(TOKENS_DIR)
    table.store.put(path, b"{}")
    table.commit(append("b"))
    table.committer.remove(2)

    with pytest.raises(CorruptFile, match="token"):
        find_token(table.store, table.committer, "t")

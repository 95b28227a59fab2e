"""A text of a version that equals an erased value removes it; a text that may equal one by chance removes nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.erasure import ErasureOptions, ErasureReport, Subject, erase, head_rewriter
from lance_ops.maintenance.erasure.searching.stated_texts import stated_texts
from lance_ops.runners import InThreads
from lance_ops.transactions import COMMIT_MESSAGE, CommittedVersion, Delete, Transaction, UpdateConfig
from lance_ops.transactions.transaction import StoredTransaction
from lance_ops.verbs import Erase, make_plan
from lance_ops.writing import commit_operation

SUBJECT = "subject-7f3a9c"


def rows(*kinds: str) -> pa.Table:
    return pa.table({"id": range(len(kinds)), "kind": kinds, "username": [f"user {each}" for each in kinds]})


def erased(uri: str, value: str = SUBJECT) -> ErasureReport:
    options = ErasureOptions("request 12", rewrite_branches=True)
    return erase(lance_ops.dataset(uri).snapshot, Subject(f"kind = '{value}'"), options)


def retained(uri: str) -> list[int]:
    return [each["version"] for each in lance_ops.dataset(uri).versions()]


@pytest.mark.parametrize("value", ["kind", "user", "lance", "lance_ops", "reason", "erasure", "true", "data"])
def test_a_value_that_is_a_name_or_a_word_of_the_library_removes_only_what_stores_the_rows(
    dataset_uri: str, value: str
) -> None:
    lance_ops.write_dataset(rows("a", "b"), dataset_uri)
    lance_ops.dataset(dataset_uri).update_config({"lance_ops.verify_checksums": "true"})
    lance_ops.dataset(dataset_uri).delete("kind = 'a'")
    made = lance_ops.write_dataset(rows(value, "c"), dataset_uri, mode="append")
    report = erased(dataset_uri, value)
    kept, removed = retained(dataset_uri), report.removed_versions
    assert kept[:3] == [1, 2, 3], "they store no such row"
    assert removed[0] == f"main/{made.version}"
    assert kept[-1] <= made.version + 3, "rows deleted, and their fragment rewritten"
    assert lance_ops.dataset(dataset_uri).count_rows() == 2
    assert all("an erased value stands in its bytes" in line for line in report.unproven)


def test_a_head_that_only_states_a_word_of_the_library_gets_no_version(dataset_uri: str) -> None:
    lance_ops.write_dataset(rows("a", "b"), dataset_uri)
    lance_ops.dataset(dataset_uri).delete("kind = 'a'")
    report = erased(dataset_uri, "lance")
    assert (retained(dataset_uri), report.removed_versions, report.is_proven) == ([1, 2], (), False)


def test_an_older_version_whose_config_is_the_value_goes_and_one_that_mentions_it_is_named(dataset_uri: str) -> None:
    lance_ops.write_dataset(rows("a", "b"), dataset_uri)
    for owner in (f"about {SUBJECT}", SUBJECT, None):
        lance_ops.dataset(dataset_uri).update_config({"owner": owner})
    lance_ops.write_dataset(rows(SUBJECT), dataset_uri, mode="append")
    verb = Erase(f"kind = '{SUBJECT}'", "request 12")
    assert make_plan(verb, lance_ops.dataset(dataset_uri), InThreads())[1].facts["versions_removed_for_texts"] == 1
    report = erased(dataset_uri)
    assert report.removed_versions[0] == "main/3"
    assert retained(dataset_uri)[:3] == [1, 2, 4]
    assert {line.partition("/")[0] for line in report.unproven} == {"_transactions", "_versions"}
    assert len(report.unproven) == 2
    assert all("remove" in line for line in report.unproven)


def test_what_the_newest_versions_config_states_removes_no_version(dataset_uri: str) -> None:
    lance_ops.write_dataset(rows("a", "b"), dataset_uri)
    lance_ops.dataset(dataset_uri).update_config({"active": "true"})
    lance_ops.dataset(dataset_uri).update_config({"other": "1"})
    report = erased(dataset_uri, "true")
    assert (retained(dataset_uri), report.removed_versions, report.is_proven) == ([1, 2, 3], (), False)
    lance_ops.dataset(dataset_uri).update_config({"active": None})
    report = erased(dataset_uri, "true")
    assert (retained(dataset_uri), report.is_proven) == ([1, 4], True)


def test_a_branch_that_the_filter_cannot_search_stays_as_it_is_and_is_named(dataset_uri: str) -> None:
    data = lance_ops.write_dataset(rows("a", SUBJECT), dataset_uri)
    trial = data.create_branch("trial")
    for mode in ("overwrite", "append"):
        trial = lance_ops.write_dataset(pa.table({"other": [1]}), trial.uri, mode=mode)
    report = erased(dataset_uri)
    assert lance_ops.dataset(dataset_uri).count_rows() == 1
    assert lance_ops.dataset(trial.uri).version == trial.version, "no commit can change why it is not proven"
    assert retained(trial.uri) == [trial.version - 1, trial.version]
    assert [line for line in report.unproven if "trial" in line] == [
        f"version {version} of trial: its columns differ, so that the filter cannot search it"
        for version in (trial.version, trial.version - 1)
    ]
    assert lance_ops.dataset(dataset_uri).version <= data.version + 3, "rows deleted, and their fragment rewritten"


def test_a_writer_that_states_the_value_again_and_again_makes_the_erasure_commit_once(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = lance_ops.write_dataset(rows("a", "b"), dataset_uri)
    commit_operation(data.snapshot, UpdateConfig(), properties={"note": SUBJECT})
    made = []

    def committing_after(*arguments: Any, **options: Any) -> Any:
        made.append(commit_operation(*arguments, **options))
        commit_operation(made[-1], UpdateConfig(), properties={"note": SUBJECT})
        return made[-1]

    monkeypatch.setattr(head_rewriter, "commit_operation", committing_after)
    report = erased(dataset_uri)
    assert len(made) == 1
    assert retained(dataset_uri) == [1, 3, 4]
    assert "version 4 of main: its transaction states a value of the rows" in report.unproven


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("kind = 'O''Brien' AND \"id\" = 1", {b"O'Brien"}),
        ('(kind == "one")', {b"one"}),
        ("\"kind\" = 'username' OR username = 'kind'", {b"username", b"kind"}),
        ("data = X'00ff'", {b"\x00\xff"}),
        ("kind = 'say \"kind\"'", {b'say "kind"'}),
        ("kind LIKE '%part%'", {b"%part%"}),
        ("id = 7", set()),
    ],
)
def test_the_literals_of_a_deletion_are_stated_and_names_of_columns_are_not(
    dataset_uri: str, predicate: str, expected: set[bytes]
) -> None:
    manifest = lance_ops.write_dataset(rows("a"), dataset_uri).snapshot.manifest
    transaction = Transaction(1, Delete((), (), predicate), transaction_properties={"lance_ops.token": "t"})
    version = CommittedVersion(manifest, StoredTransaction(transaction.encode(), "transaction"))
    assert stated_texts(version).by_transaction == expected


def test_texts_of_callers_are_stated_and_those_of_the_library_are_not(dataset_uri: str) -> None:
    data = lance_ops.write_dataset(rows("a"), dataset_uri)
    data.update_config({"owner": "Ann", "lance.auto_cleanup.interval": "20"})
    data.update_schema_metadata({"source": "crm"})
    properties = {COMMIT_MESSAGE: "said", "lance_ops.reason": "because", "lance_ops.token": "t", "note": "noted"}
    transaction = StoredTransaction(Transaction(1, UpdateConfig(), transaction_properties=properties).encode(), "t")
    stated = stated_texts(CommittedVersion(lance_ops.dataset(dataset_uri).snapshot.manifest, transaction))
    assert stated.by_transaction == {b"said", b"because", b"noted"}
    assert stated.by_metadata == {b"Ann", b"crm"}

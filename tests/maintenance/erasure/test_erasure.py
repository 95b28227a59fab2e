"""An erased value is nowhere beneath the root: not in old versions, tags, branches, indices or transactions."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_ops
from lance_ops.core.errors import HeldByRunningWork, InvalidInput, RetryableConflict
from lance_ops.fragment import write_fragments
from lance_ops.maintenance.cleanup import CleanupOptions, explain_cleanup_old_versions
from lance_ops.maintenance.compaction import execute_rewrite
from lance_ops.maintenance.debt import measure_debt
from lance_ops.maintenance.erasure import ErasureOptions, Subject, erase, head_rewriter, plan_erasure, removal
from lance_ops.maintenance.indexing import rebuild_index
from lance_ops.refs import pinned_with_later
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import FsspecStore
from tests.pickling_runner import PicklingRunner
from tests.s3_server import S3Server

SUBJECT = "subject-7f3a9c"
ALL = ErasureOptions("request 12", remove_tags=True, rewrite_branches=True)


def rows(start: int, stop: int, *subjects: int) -> pa.Table:
    ids = list(range(start, stop))
    return pa.table({"id": ids, "name": [SUBJECT if each in subjects else f"name {each}" for each in ids]})


@pytest.fixture
def people(dataset_uri: str) -> lance_ops.LanceDataset:
    """Rows of the subject that are live, deleted, updated and compacted away, and indices that cover them."""
    lance_ops.write_dataset(rows(0, 20), dataset_uri)
    for at in range(1, 4):
        made = lance_ops.write_dataset(rows(20 * at, 20 * at + 20, 20 * at + 3), dataset_uri, mode="append")
    made.create_scalar_index("name", "BTREE")
    made.create_scalar_index("id", "ZONEMAP")
    made.delete("id = 23")
    made.update({"id": "id + 1000"}, "id = 43")
    return made


def holders(root: str, value: str = SUBJECT) -> list[str]:
    """Return the files whose bytes hold a value."""
    return sorted(
        str(path.relative_to(root))
        for path in Path(root).rglob("*")
        if path.is_file() and value.encode() in path.read_bytes()
    )


def test_an_index_that_was_rebuilt_before_another_rebuild_conflicted_is_in_the_report(
    people: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilt: list[str] = []

    def rebuild_or_conflict(head: Snapshot, name: str, *, runner: Runner) -> Snapshot:
        rebuilt.append(name)
        if len(rebuilt) == 2:
            raise RetryableConflict("another writer was first")
        return rebuild_index(head, name, runner=runner)

    monkeypatch.setattr(head_rewriter, "rebuild_index", rebuild_or_conflict)
    report = erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ALL)
    assert rebuilt == ["id_idx", "name_idx", "name_idx"]
    assert (report.is_proven, report.rebuilt_indices) == (True, ("id_idx", "name_idx"))


def test_the_value_is_nowhere_beneath_the_root_afterwards(people: lance_ops.LanceDataset) -> None:
    uri = people.uri
    assert len(holders(uri)) >= 4, "data files and the index hold it"
    people.tags.create("quarter", 3)
    people.create_branch("trial", 4).delete("id = 0")
    report = erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ALL, PicklingRunner())
    assert report.is_proven, report.unproven
    assert holders(uri) == []
    assert (report.erased_rows, report.removed_tags) == (2 + 3, ("quarter",))
    assert report.searched_values == 1
    assert set(report.rebuilt_indices) == {"name_idx", "id_idx"}
    left = lance_ops.dataset(uri)
    assert left.count_rows() == 80 - 3
    assert left.count_rows(f"name = '{SUBJECT}'") == 0
    assert left.to_table(filter="name = 'name 24'")["id"].to_pylist() == [24]
    assert lance.dataset(uri).count_rows() == 77
    assert left.checkout_version(("trial", None)).count_rows() == 80 - 4
    verified = left.verify(all_versions=True)
    assert verified.ok, verified.damages
    assert left.tags.list() == {}
    remaining = {path for path in Path(uri).rglob("*") if path.is_file() and "erasures" not in str(path)}
    assert {str(path.relative_to(uri)) for path in remaining} == {file.path for file in report.files}


def test_the_report_is_kept_without_the_subject_and_both_forms_say_what_was_done(
    people: lance_ops.LanceDataset,
) -> None:
    report = erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ALL)
    kept = json.loads((Path(people.uri) / report.json_path).read_text())
    assert kept["is_proven"]
    assert kept["erased_rows"] == 2
    page = (Path(people.uri) / report.html_path).read_text()
    assert "Proven: no remaining file beneath the dataset's root holds the rows" in page
    assert report.files[0].sha256 in page
    assert SUBJECT not in page + json.dumps(kept)
    assert kept["subject"] == Subject(f"name = '{SUBJECT}'").digest(report.id)
    lance_ops.dataset(people.uri).cleanup_old_versions(delete_unverified=True)
    assert (Path(people.uri) / report.json_path).exists()


def test_versions_without_the_rows_stay(dataset_uri: str) -> None:
    lance_ops.write_dataset(rows(0, 10), dataset_uri)
    made = lance_ops.write_dataset(rows(10, 20, 15), dataset_uri, mode="append")
    report = erase(made.snapshot, Subject(f"name = '{SUBJECT}'"), ErasureOptions("r"))
    assert report.branches["main"].clean_versions == (1,)
    assert lance_ops.dataset(dataset_uri, 1).count_rows() == 10
    assert holders(dataset_uri) == []
    lance_ops.dataset(dataset_uri, 1).restore()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda made: made.tags.create("quarter", 3), r"tags hold the rows: quarter \(version 3 of main\)"),
        (lambda made: made.create_branch("trial", 3), "branches hold the rows: trial"),
    ],
)
def test_a_tag_or_a_branch_that_holds_the_rows_is_refused_by_name(
    people: lance_ops.LanceDataset, prepare: Callable[[Any], object], message: str
) -> None:
    prepare(people)
    before = holders(people.uri)
    with pytest.raises(InvalidInput, match=message):
        erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ErasureOptions("r"))
    assert holders(people.uri) == before
    assert not (Path(people.uri) / "_lance_ops" / "erasures").exists()


def test_rows_appended_meanwhile_are_erased_too_and_counted(people: lance_ops.LanceDataset) -> None:
    class Appending(InThreads):
        """Appends a row of the subject while the first fragments are rewritten."""

        appended = False

        def map(self, function: Any, tasks: Any, *rest: Any) -> Any:
            if function is execute_rewrite and not self.appended:
                self.appended = True
                lance_ops.write_dataset(rows(900, 905, 902), people.uri, mode="append")
            return super().map(function, tasks, *rest)

    report = erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ALL, Appending())
    assert report.is_proven, report.unproven
    assert (report.erased_rows, report.rows_appended_meanwhile) == (3, 1)
    assert holders(people.uri) == []
    assert lance_ops.dataset(people.uri).count_rows() == 77 + 4


def test_an_erasure_that_crashed_blocks_restores_and_goes_on(
    people: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(removal, "cleanup_old_versions", crash)
        with pytest.raises(KeyboardInterrupt):
            erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ALL)
    assert lance_ops.dataset(people.uri).count_rows(f"name = '{SUBJECT}'") == 0
    with pytest.raises(InvalidInput, match=r"may hold rows that erasure .* removed \(request 12\)"):
        lance_ops.dataset(people.uri, 4).restore()
    for detached in (False, True):
        with pytest.raises(InvalidInput, match="may hold rows that erasure"):
            lance_ops.LanceDataset.commit(people.uri, lance_ops.LanceOperation.Restore(4), 4, detached=detached)
    report = erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ALL)
    assert report.is_proven, report.unproven
    assert holders(people.uri) == []
    (record,) = (Path(people.uri) / "_lance_ops" / "erasures").glob("*.json")
    assert record.stem == report.id
    lance_ops.dataset(people.uri).restore()


def test_a_file_with_the_rows_that_no_version_names_is_not_proven_unless_it_may_be_removed(
    people: lance_ops.LanceDataset,
) -> None:
    named = next(iter(people.get_fragments()[1].data_files())).path
    orphan = Path(people.uri) / "data" / "0101.lance"
    orphan.write_bytes((Path(people.uri) / "data" / named).read_bytes())
    report = erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ALL)
    assert {each.partition(":")[0] for each in report.unproven} == {"data/0101.lance"}
    assert not report.is_proven
    again = erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ErasureOptions("r", delete_unverified=True))
    assert again.is_proven, again.unproven
    assert holders(people.uri) == []


def test_versions_that_a_pin_keeps_with_later_ones_are_refused(people: lance_ops.LanceDataset) -> None:
    second = people.checkout_version(2).snapshot
    with pinned_with_later(second), pytest.raises(HeldByRunningWork, match=r" version 5 of main \(.*/2-later-"):
        erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), ALL)


def test_a_clean_detached_version_keeps_its_files_and_they_are_proven(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(rows(0, 2, 1), dataset_uri, max_rows_per_file=1)
    _, removed = made.get_fragments()
    delete = lance_ops.LanceOperation.Delete([], [removed.fragment_id], "id = 1")
    detached = lance_ops.LanceDataset.commit(made.uri, delete, made.version, detached=True)
    made = lance_ops.dataset(dataset_uri)
    made.optimize.compact_files()
    report = erase(made.snapshot, Subject(f"name = '{SUBJECT}'"), ALL)
    assert report.is_proven, report.unproven
    assert holders(dataset_uri) == []
    assert lance_ops.dataset(dataset_uri, version=detached.version).to_table() == rows(0, 1)


def test_keys_of_several_columns_and_of_a_column_that_old_versions_lack(dataset_uri: str) -> None:
    lance_ops.write_dataset(rows(0, 10, 4), dataset_uri)
    made = lance_ops.dataset(dataset_uri)
    made.add_columns({"account": "id + 500"})
    report = erase(made.snapshot, Subject.of_keys(pa.table({"id": [4, 4, 7], "account": [504, 999, 507]})), ALL)
    assert report.is_proven, report.unproven
    assert holders(dataset_uri) == [], "version 1 has no column account, and went with the file that it shares"
    assert lance_ops.dataset(dataset_uri).to_table()["id"].to_pylist() == [0, 1, 2, 3, 5, 6, 8, 9]
    assert min(version["version"] for version in lance_ops.dataset(dataset_uri).versions()) > 2


def test_long_lists_of_keys_with_the_same_ends_are_different_subjects() -> None:
    keys = [f"user-{number}" for number in range(60)]
    other = [*keys[:30], "someone else", *keys[31:]]
    lists = [pa.table({"id": each}) for each in (keys, other)]
    assert len({Subject.of_keys(each).digest("s") for each in lists}) == 2
    assert len({Subject(pc.field("id").isin(each["id"].combine_chunks())).digest("s") for each in lists}) == 2
    assert Subject.of_keys(lists[0]).digest("s") == Subject.of_keys(pa.table({"id": keys})).digest("s")


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
def test_many_keys_leave_every_version_and_are_looked_for_in_the_bytes(dataset_uri: str, texts: bool) -> None:
    ids = [f"user-{number:06}" if texts else number for number in range(40_000)]
    lance_ops.write_dataset(pa.table({"id": ids}), dataset_uri, max_rows_per_file=20_000)
    made = lance_ops.write_dataset(pa.table({"id": ids[:3]}), dataset_uri, mode="append")
    report = erase(made.snapshot, Subject.of_keys(pa.table({"id": ids[::2]})), ALL)
    assert report.is_proven, report.unproven
    assert report.searched_values == (20_000 if texts else 0)
    assert lance_ops.dataset(dataset_uri).to_table()["id"].to_pylist() == [*ids[1::2], ids[1]]


def test_a_plan_finds_the_holders_and_changes_nothing(people: lance_ops.LanceDataset) -> None:
    found = plan_erasure(people.snapshot, Subject(f"name = '{SUBJECT}'"))
    assert found.num_live_rows == 2
    assert set(found.main.holding) >= {2, 3, 4}
    assert 1 not in found.main.holding
    assert lance_ops.dataset(people.uri).version == people.version


def test_more_rows_than_allowed_are_refused(people: lance_ops.LanceDataset) -> None:
    with pytest.raises(InvalidInput, match="80 rows match|79 rows match"):
        erase(people.snapshot, Subject("true"), ErasureOptions("r", at_most_rows=5))


@pytest.mark.server
def test_an_erasure_and_the_count_of_orphans_read_an_object_store(s3_server: S3Server) -> None:
    uri, options = s3_server.new_uri("people.lance"), s3_server.storage_options
    lance_ops.write_dataset(rows(0, 20, 3), uri, storage_options=options)
    people = lance_ops.write_dataset(rows(20, 40), uri, mode="append", storage_options=options)
    people.create_scalar_index("name", "BTREE")
    people.delete("id = 30")
    store = FsspecStore(uri, options)
    store.put("data/orphan.lance", pa.py_buffer(b"0" * 1000))
    assert measure_debt(people.snapshot, orphans=True).inventory.orphan_bytes == 0, "its writer may be about to commit"
    at_any_age = CleanupOptions(versions=(), delete_unverified=True)
    assert explain_cleanup_old_versions(people.snapshot, at_any_age).stats.bytes_removed == 1000

    report = erase(people.snapshot, Subject(f"name = '{SUBJECT}'"), replace(ALL, delete_unverified=True))
    assert report.is_proven, report.unproven
    contents = {info.path: store.get(info.path).to_pybytes() for info in store.list("")}
    assert report.html_path in contents and "data/orphan.lance" not in contents
    assert [path for path, content in contents.items() if SUBJECT.encode() in content] == []
    assert lance_ops.dataset(uri, storage_options=options).count_rows() == 38


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_a_data_file_without_a_version_is_searched_row_by_row(dataset_uri: str, stable_row_ids: bool) -> None:
    """A writer at work, or one that died, left it."""
    data = lance_ops.write_dataset(rows(0, 20, 3), dataset_uri, enable_stable_row_ids=stable_row_ids)
    write_fragments(rows(20, 40), dataset_uri)
    report = erase(data.snapshot, Subject("id = 3"), ALL, PicklingRunner())
    assert report.is_proven, report.unproven
    (unnamed,) = (file for file in report.files if "no version" in file.examined)
    assert unnamed.examined == "named by no version, searched row by row, its bytes hashed"
    write_fragments(rows(40, 60), dataset_uri)
    report = erase(data.snapshot, Subject("id = 41"), ALL, PicklingRunner())
    (why,) = report.unproven
    assert "it stores the rows, and no version names it" in why
    assert report.waits_for_writers
    (Path(dataset_uri) / "notes.txt").write_text("a file of somebody")
    report = erase(data.snapshot, Subject("id = 41"), ALL)
    assert len(report.unproven) == 2 and not report.waits_for_writers


def test_an_erasure_waits_for_no_writer_of_an_old_file_without_a_version(dataset_uri: str) -> None:
    data = lance_ops.write_dataset(rows(0, 20, 3), dataset_uri)
    torn, two_hours_ago = Path(dataset_uri, "data", "torn.lance"), time.time() - 2 * 3600
    torn.write_bytes(b"x")
    assert erase(data.snapshot, Subject("id = 3"), ALL).waits_for_writers
    os.utime(torn, (two_hours_ago, two_hours_ago))
    report = erase(data.snapshot, Subject("id = 3"), ALL)
    assert report.unproven == (
        "data/torn.lance: no version names it; if no writer is at work, erase again and permit delete_unverified",
    )
    assert not report.waits_for_writers
    assert erase(data.snapshot, Subject("id = 3"), replace(ALL, delete_unverified=True)).is_proven


def test_a_file_without_a_version_that_is_not_whole_or_lacks_columns_is_not_proven(dataset_uri: str) -> None:
    data = lance_ops.write_dataset(rows(0, 20, 3), dataset_uri)
    lance_ops.write_dataset(rows(0, 20).select(["id"]), f"{dataset_uri}-ids")
    (whole,) = (Path(dataset_uri) / "data").iterdir()
    (narrow,) = (Path(f"{dataset_uri}-ids") / "data").iterdir()
    (Path(dataset_uri) / "data" / "torn.lance").write_bytes(whole.read_bytes()[100:-100])
    (Path(dataset_uri) / "data" / "narrow.lance").write_bytes(narrow.read_bytes())
    report = erase(data.snapshot, Subject("id = 3"), ALL)
    assert sorted(why.partition(":")[0] for why in report.unproven) == ["data/narrow.lance", "data/torn.lance"]

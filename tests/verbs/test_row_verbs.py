from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import InvalidInput, PlanOutdated
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.verbs import (
    REASON_PROPERTY,
    AddColumns,
    DeleteDuplicates,
    DeleteRows,
    StoredPlan,
    Update,
    Upsert,
    Verb,
    do_now,
    execute_plan,
    make_plan,
)
from lance_ops.verbs.rows.by_keys import given_keys
from lance_ops.verbs.sources import source_rows
from tests.pickling_runner import PicklingRunner
from tests.verbs.living import live, section

T = TypeVar("T")
R = TypeVar("R")


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Twelve rows in three fragments."""
    return write_dataset(pa.table({"x": range(12), "s": ["old"] * 12}), dataset_uri, max_rows_per_file=4)


def test_an_update_shows_old_and_new_values_and_is_one_commit(numbers: LanceDataset) -> None:
    preview, done = live(Update({"s": "'new'"}, "x >= 9", reason="typo"), numbers)
    assert preview.summary == "update s of 3 of 12 rows"
    rows = section(preview, "Rows that would change")
    assert (rows["x"], rows["s"], rows["s (new)"]) == (("9", "10", "11"), ("old",) * 3, ("new",) * 3)
    assert (done.version, done.facts) == (2, {"matching_rows": 3})
    data = dataset(numbers.uri)
    assert data.to_table(filter="s = 'new'").sort_by("x")["x"].to_pylist() == [9, 10, 11]
    transaction = data.read_transaction(2)
    assert transaction is not None
    assert transaction.transaction_properties[REASON_PROPERTY] == "typo"


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (Update({}), "give either values, or files"),
        (Update({"y": "1"}), "y"),
        (Update({"s": "'n'"}, at_most_rows=11), "12 rows match and at_most_rows is 11"),
        (Upsert(), "files is empty"),
        (Upsert(("f.csv",)), "declares no primary key"),
        (Upsert(("f.csv",), ("x",), matched="keep", condition="source.x > 1"), "condition belongs to matched: update"),
        (AddColumns(), "give either values, a function, or files"),
        (AddColumns({"x": "1"}), "has column 'x' already"),
        (AddColumns(function="tests.verbs.made_columns"), "is not package.module:name"),
        (AddColumns(function="tests.verbs.made_columns:nothing"), "cannot be imported"),
        (AddColumns(function="tests.verbs.made_columns:LIMIT"), "is no function"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_the_preview(numbers: LanceDataset, verb: Verb, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make_plan(verb, numbers)


SOURCE = pa.table({"x": [10, 11, 11, 20, 21, None], "s": ["new"] * 6})


@pytest.mark.parametrize("kind", ["csv", "lance"])
def test_an_upsert_counts_what_it_would_do_and_does_it(numbers: LanceDataset, tmp_path: Path, kind: str) -> None:
    path, source = str(tmp_path / f"in.{kind}"), SOURCE.filter(pa.compute.field("x") != 11)
    if kind == "csv":
        pyarrow.csv.write_csv(source, path)
    else:
        write_dataset(source, path)
    preview, done = live(Upsert((path,), ("x",)), numbers)
    assert preview.summary == "insert 2, update 1 and delete 0 rows"
    assert section(preview, "Rows that match, which would change") == {"x": ("10",), "s": ("old",)}
    assert section(preview, "The rows of the source for them") == {"x": ("10",), "s": ("new",)}
    assert section(preview, "Rows that come in")["x"][0] == "10"
    assert (done.read_version, done.version) == (1, 2)
    assert done.facts == {"num_inserted_rows": 2, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert preview.after is not None
    assert preview.after.rows == done.after.rows == 14


def test_rows_of_several_text_files_are_shown_in_the_types_of_the_table(dataset_uri: str, tmp_path: Path) -> None:
    rows = pa.table({"x": [1, 2, 3], "zip": ["old"] * 3})
    files = tuple(str(tmp_path / f"{number}.csv") for number in range(3))
    for file, content in zip(files, ("x,zip\n1,007\n", "x,zip\n9,n/a\n", "zip,x\nA1,2\n"), strict=True):
        Path(file).write_text(content)
    preview, done = live(Upsert(files, ("x",)), write_dataset(rows, dataset_uri))
    assert section(preview, "The rows of the source for them") == {"x": ("1", "2"), "zip": ("007", "A1")}
    assert done.facts == {"num_inserted_rows": 1, "num_updated_rows": 2, "num_deleted_rows": 0}


def test_the_search_for_rows_of_the_source_ends_with_the_last_key(
    dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_dataset(pa.table({"x": [1] * 5, "s": ["old"] * 5}), dataset_uri)
    files, read = tuple(str(tmp_path / f"{number}.csv") for number in range(3)), list[str]()
    for number, file in enumerate(files):
        Path(file).write_text(f"x,s\n{number},new\n")

    def recorded(data: LanceDataset, source: str, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        if columns is None:
            read.append(source)
        return source_rows(data, source, columns)

    monkeypatch.setattr(given_keys, "source_rows", recorded)
    _, preview = make_plan(Upsert(files, ("x",)), data)
    assert section(preview, "The rows of the source for them") == {"x": ("1",), "s": ("new",)}
    assert read == list(files[:2])


@pytest.mark.parametrize("columns", ["zip", "note,zip"])
def test_keys_of_text_files_are_read_in_the_types_of_the_table(dataset_uri: str, tmp_path: Path, columns: str) -> None:
    data = write_dataset(pa.table({"zip": ["007", "7", "8"], "x": range(3)}), dataset_uri)
    file = tmp_path / "keys.csv"
    file.write_text(f"{columns}\n{'n,' if ',' in columns else ''}007\n")
    preview, done = live(DeleteRows(key_files=(str(file),), on=("zip",), reason="r"), data)
    assert preview.facts == done.facts == {"matching_rows": 1}
    assert dataset(data.uri).to_table()["zip"].to_pylist() == ["7", "8"]
    file.write_text("note,x\nn,1\n")
    with pytest.raises(InvalidInput, match="the source has no column 'zip'"):
        data.delete_by_keys(str(file), "zip")


@pytest.mark.parametrize(
    ("options", "inserted", "updated", "deleted"),
    [
        ({"insert": False, "condition": "source.x > 10"}, 0, 1, 0),
        ({"matched": "delete", "insert": False}, 0, 0, 2),
        ({"matched": "keep", "delete_unmatched": "x < 3"}, 2, 0, 3),
        ({"matched": "keep", "insert": False, "delete_unmatched": "true"}, 0, 0, 10),
    ],
)
def test_an_upsert_has_the_clauses_of_a_merge(
    numbers: LanceDataset, tmp_path: Path, options: dict[str, Any], inserted: int, updated: int, deleted: int
) -> None:
    source = write_dataset(pa.table({"x": [10, 11, 20, 21], "s": ["new"] * 4}), str(tmp_path / "in.lance"))
    _, done = live(Upsert((source.uri,), ("x",), **options), numbers)
    assert list(done.facts.values()) == [inserted, updated, deleted]


@pytest.mark.parametrize(
    ("condition", "num_deleted"), [("x < 3", 3), ("x >= 9", 1), ("true", 10), ("TRUE ", 10), ("x < 0", 0)]
)
def test_rows_that_nothing_matches_are_counted_and_bounded_before_they_are_deleted(
    numbers: LanceDataset, tmp_path: Path, condition: str, num_deleted: int
) -> None:
    source = write_dataset(pa.table({"x": [10, 11, 20], "s": ["new"] * 3}), str(tmp_path / "in.lance"))
    options: dict[str, Any] = {"matched": "keep", "insert": False, "delete_unmatched": condition}
    refused = Upsert((source.uri,), ("x",), at_most_rows=1 + num_deleted, **options)
    for attempt in (make_plan, do_now):
        with pytest.raises(InvalidInput, match=f"^{2 + num_deleted} rows match or are deleted by delete_unmatched"):
            attempt(refused, numbers)
    preview, done = live(Upsert((source.uri,), ("x",), at_most_rows=2 + num_deleted, **options), numbers)
    assert preview.summary.endswith(f"and delete {num_deleted} rows") and preview.does_nothing is not bool(num_deleted)
    assert preview.after is not None and preview.after.rows == done.after.rows == 12 - num_deleted


def test_a_preview_shows_whole_rows_that_go_and_what_is_new_beside_what_was(dataset_uri: str, tmp_path: Path) -> None:
    wide = {f"c{number}": range(12) for number in range(10)}
    data = write_dataset(pa.table({**wide, "x": range(12), "s": ["old"] * 12}), dataset_uri, max_rows_per_file=4)
    keys = write_dataset(pa.table({"x": [11, 1, 3]}), str(tmp_path / "keys.lance")).uri

    def shown(verb: Verb) -> dict[str, dict[str, tuple[str, ...]]]:
        _, preview = make_plan(verb, data)
        return {each.title: section(preview, each.title) for each in preview.sections}

    gone = shown(DeleteRows(key_files=(keys,), on=("x",), reason="r"))["Rows that would go"]
    assert gone["x"] == gone["c0"] == ("1", "3", "11") and len(gone) == 8
    gone = shown(DeleteRows("x > 2", "r"))["Rows that would go (the first 5 of 9)"]
    assert gone["x"] == ("3", "4", "5", "6", "7")
    changed = shown(Update({"s": "'new'"}, "x = 5"))["Rows that would change"]
    assert (changed["c0"], changed["s"], changed["s (new)"]) == (("5",), ("old",), ("new",))
    merged = shown(Upsert((keys,), ("x",), matched="delete", insert=False, delete_unmatched="x < 3"))
    assert merged["Rows that match, which would go"]["x"] == ("1", "3", "11")
    assert merged["Rows that nothing matches, which would go"]["x"] == ("0", "2")


@pytest.mark.parametrize(("keep", "fates"), [("first", ("stays", "goes", "goes")), ("last", ("goes", "goes", "stays"))])
def test_a_preview_of_duplicates_shows_which_rows_stay(
    dataset_uri: str, keep: Literal["first", "last"], fates: tuple[str, ...]
) -> None:
    rows = pa.table({"k": [1, 1, 2, 3, 1, None], "s": list("abcdef")})
    preview, _ = live(DeleteDuplicates(("k",), keep), write_dataset(rows, dataset_uri, max_rows_per_file=2))
    shown = section(preview, "Rows of the most frequent key")
    assert (shown["k"], shown["s"], shown["what happens"]) == (("1",) * 3, ("a", "b", "e"), fates)
    kept = dataset(dataset_uri).to_table(filter="k = 1")["s"].to_pylist()
    assert kept == [text for text, fate in zip(shown["s"], fates, strict=True) if fate == "stays"]


def test_keys_are_counted_with_repetitions_and_a_null_matches_nothing(numbers: LanceDataset, tmp_path: Path) -> None:
    path = str(tmp_path / "in.parquet")
    pyarrow.parquet.write_table(SOURCE, path)
    _, preview = make_plan(Upsert((path,), ("x",)), numbers)
    assert preview.facts == {"source_rows": 6, "matching_rows": 2}
    assert preview.summary.startswith("insert 3, update 2")


def test_an_upsert_is_refused_when_the_table_or_the_source_has_changed(numbers: LanceDataset, tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(SOURCE.slice(3), path)
    plan, _ = make_plan(Upsert((str(path),), ("x",)), numbers)
    pyarrow.parquet.write_table(SOURCE.slice(4), path)
    os.utime(path, (1, 1))
    with pytest.raises(PlanOutdated, match=r"in.parquet has changed since the plan"):
        execute_plan(plan, numbers)
    plan, _ = make_plan(Upsert((str(path),), ("x",)), numbers)
    dataset(numbers.uri).insert(pa.table({"x": [21], "s": ["s"]}))
    with pytest.raises(PlanOutdated, match=r"newer versions contradict it: 2 \(Append\)"):
        execute_plan(plan, dataset(numbers.uri))


@pytest.mark.parametrize("runner", [None, PicklingRunner()], ids=["here", "by tasks"])
@pytest.mark.parametrize(
    ("change", "delete_unmatched", "holds"),
    [
        (lambda data: data.insert(pa.table({"x": [30], "s": ["s"]})), None, True),
        (lambda data: data.delete("x = 3"), None, True),
        (lambda data: data.update({"s": "'other'"}, where="x < 10"), None, True),
        (lambda data: data.optimize.compact_files(), "x < 5", True),
        (lambda data: data.delete("x = 11"), None, False),
        (lambda data: data.update({"s": "'other'"}, where="x = 10"), None, False),
        (lambda data: data.insert(pa.table({"x": [20], "s": ["s"]})), None, False),
        (lambda data: data.insert(pa.table({"x": [4], "s": ["s"]})), "x < 5", False),
        (lambda data: data.insert(pa.table({"x": [40], "s": ["s"]})), "x < 5", True),
        (lambda data: data.add_columns({"y": "x"}), None, False),
    ],
)
def test_an_upsert_is_executed_after_changes_that_leave_its_rows_alone(
    numbers: LanceDataset,
    tmp_path: Path,
    change: Callable[[LanceDataset], object],
    delete_unmatched: str | None,
    holds: bool,
    runner: Runner | None,
) -> None:
    source = write_dataset(pa.table({"x": [10, 11, 20], "s": ["new"] * 3}), str(tmp_path / "in.lance"))
    plan, _ = make_plan(Upsert((source.uri,), ("x",), delete_unmatched=delete_unmatched), numbers)
    change(dataset(numbers.uri))
    newest = dataset(numbers.uri)
    if not holds:
        with pytest.raises(PlanOutdated, match="upsert was planned on version 1"):
            execute_plan(plan, newest, runner)
        assert dataset(numbers.uri).version == newest.version
        return
    done = execute_plan(plan, newest, runner)
    assert (done.read_version, done.facts["num_updated_rows"], done.facts["num_inserted_rows"]) == (
        newest.version,
        2,
        1,
    )
    rows = dataset(numbers.uri).to_table(filter="x IN (10, 11, 20)")
    assert rows["s"].to_pylist() == ["new"] * 3


@pytest.mark.parametrize("runner", [None, PicklingRunner()], ids=["here", "by tasks"])
@pytest.mark.parametrize("compacted", [False, True])
def test_an_upsert_compares_the_bytes_of_blobs_and_not_their_places(
    dataset_uri: str, tmp_path: Path, compacted: bool, runner: Runner | None
) -> None:
    blobs = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("x", pa.int64()), pa.field("s", pa.string()), blobs])
    rows = pa.table({"x": [0, 1], "s": ["old"] * 2, "b": [b"first", b"other"]}, schema)
    data = write_dataset(rows, dataset_uri, max_rows_per_file=1)
    source = write_dataset(pa.table({"x": [1]}), str(tmp_path / "in.lance"))
    places = data.to_table(["b"])["b"].to_pylist()
    plan, _ = make_plan(Upsert((source.uri,), ("x",), matched="delete", insert=False), data)
    if compacted:
        dataset(dataset_uri).optimize.compact_files()
        assert dataset(dataset_uri).to_table(["b"])["b"].to_pylist() != places
        assert execute_plan(plan, dataset(dataset_uri), runner).facts["num_deleted_rows"] == 1
        return
    newer = rows.slice(1).set_column(2, blobs, pa.array([b"newer"], pa.large_binary()))
    dataset(dataset_uri).merge_insert("x").when_matched_update_all().execute(newer)
    assert dataset(dataset_uri).to_table(["b"])["b"].to_pylist() == places
    with pytest.raises(PlanOutdated, match="upsert was planned on version 1"):
        execute_plan(plan, dataset(dataset_uri), runner)
    assert dataset(dataset_uri).count_rows() == 2


@dataclass
class InterferingRunner:
    """Lets another writer change the table once, before the first job that does not count."""

    change: Callable[[], object]
    verbs: list[str] = field(default_factory=list)

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        """Call `function` with each task; see `Runner.map`."""
        verb = "" if job is None else job.verb
        if not verb.startswith("count") and all(earlier.startswith("count") for earlier in self.verbs):
            self.change()
        self.verbs.append(verb)
        return InThreads(1).map(function, tasks, job, discard)


BOUNDED: dict[str, Callable[[str], Verb]] = {
    "delete": lambda _: DeleteRows("x < 3", "r", at_most_rows=5),
    "delete by keys": lambda keys: DeleteRows(reason="r", key_files=(keys,), on=("x",), at_most_rows=5),
    "update": lambda _: Update({"s": "'new'"}, "x < 3", at_most_rows=5),
    "upsert": lambda keys: Upsert((keys,), ("x",), insert=False, at_most_rows=5),
}


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize(("value", "num_rows"), [("x * 0 + 1", 12), ("x", 3)])
def test_a_bound_holds_for_the_rows_of_the_attempt_that_commits(
    numbers: LanceDataset, tmp_path: Path, name: str, value: str, num_rows: int
) -> None:
    keys = write_dataset(pa.table({"x": [0, 1, 2], "s": ["new"] * 3}), str(tmp_path / "keys.lance"))
    runner = InterferingRunner(lambda: dataset(numbers.uri).update({"x": value}))
    verb = BOUNDED[name](keys.uri)
    if num_rows > 5:
        with pytest.raises(InvalidInput, match=f"^{num_rows} rows match and at_most_rows is 5"):
            do_now(verb, numbers, runner)
        assert dataset(numbers.uri).version == 2
        assert dataset(numbers.uri).count_rows("s = 'old'") == 12
    else:
        done = do_now(verb, numbers, runner)
        assert (done.read_version, done.version) == (1, 3)
        assert dataset(numbers.uri).count_rows("s = 'old'") == 9
    if name in ("delete", "update"):
        assert runner.verbs.count("count rows of") == 2, "tasks count the rows of each attempt"


def test_the_preview_of_a_predicate_counts_by_tasks(numbers: LanceDataset) -> None:
    for verb in (DeleteRows("x < 3", "r"), Update({"s": "'new'"}, "x < 3")):
        runner = PicklingRunner()
        assert make_plan(verb, numbers, runner)[1].facts == {"matching_rows": 3}
        assert [job for job, _ in runner.jobs] == ["count rows of"]


def test_rows_are_deleted_by_the_keys_of_a_dataset_whose_version_the_plan_names(
    numbers: LanceDataset, tmp_path: Path
) -> None:
    keys = write_dataset(pa.table({"x": [1, 5]}), str(tmp_path / "keys.lance"))
    verb = DeleteRows(key_files=(keys.uri,), on=("x",), reason="r")
    plan, _ = make_plan(verb, numbers)
    keys.insert(pa.table({"x": [7]}))
    with pytest.raises(PlanOutdated, match=r"keys.lance has changed"):
        execute_plan(plan, numbers)
    assert live(verb, numbers)[1].facts == {"matching_rows": 3}


def test_columns_of_expressions_are_shown_with_their_types_and_added(numbers: LanceDataset) -> None:
    preview, done = live(AddColumns({"y": "x * 2", "upper": "upper(s)"}), numbers)
    assert section(preview, "New columns") == {"column": ("y", "upper"), "type": ("int64", "string")}
    assert section(preview, "First rows with the new columns")["y"] == ("0", "2", "4", "6", "8")
    assert (done.version, done.facts) == (2, {"new_columns": "y, upper"})
    assert dataset(numbers.uri).to_table(["y"], filter="x = 11").to_pylist() == [{"y": 22}]


def test_a_backfill_by_a_function_runs_on_the_runner_and_takes_in_rows_that_came_since(numbers: LanceDataset) -> None:
    plan, preview = make_plan(AddColumns(function="tests.verbs.made_columns:doubled", read_columns=("x",)), numbers)
    assert section(preview, "New columns of the first rows") == {"doubled": ("0", "2", "4", "6", "8")}
    dataset(numbers.uri).insert(pa.table({"x": [50], "s": ["s"]}))
    runner = PicklingRunner()
    done = execute_plan(StoredPlan.from_json(plan.to_json()), dataset(numbers.uri), runner)
    assert (done.read_version, done.version, runner.jobs) == (2, 3, [("add columns to", 4)])
    assert dataset(numbers.uri).to_table(["doubled"])["doubled"].to_pylist() == [*range(0, 24, 2), 100]

"""Plans of `update` and `add_columns` whose values are in files that name the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.changing import row_buckets
from lance_ops.core.errors import InvalidInput, PlanOutdated, RawFileRefused, SchemaMismatch
from lance_ops.verbs import (
    REASON_PROPERTY,
    AddColumns,
    StoredPlan,
    Update,
    Verb,
    do_now,
    execute_plan,
    make_plan,
    row_files,
)
from tests.pickling_runner import PicklingRunner
from tests.verbs.living import live, section

Change = Callable[[LanceDataset], object]

VERBS: dict[str, tuple[str, Callable[[str], Verb]]] = {
    "update": ("s", lambda file: Update(files=(file,))),
    "add_columns": ("t", lambda file: AddColumns(files=(file,))),
}


def made(uri: str, *, stable: bool = False) -> LanceDataset:
    """Twelve rows in three fragments, of which row 5 is deleted; version 2."""
    rows = pa.table({"x": range(12), "s": [f"old {x}" for x in range(12)]})
    data = write_dataset(rows, uri, max_rows_per_file=4, enable_stable_row_ids=stable)
    data.delete("x = 5")
    return data


def file_of(data: LanceDataset, folder: Path, where: str, column: str, key: str = "_rowaddr") -> str:
    """A Parquet file with a text for each row that matches, the last row first."""
    rows = data.to_table(["x"], filter=where, with_row_id=True, with_row_address=True).sort_by([("x", "descending")])
    path = str(folder / "values.parquet")
    texts = [f"new {x}" for x in rows["x"].to_pylist()]
    pyarrow.parquet.write_table(pa.table({column: texts, key: rows[key], "_fragid": [0] * len(rows)}), path)
    return path


def texts(data: LanceDataset, column: str) -> dict[int, str | None]:
    return {row["x"]: row[column] for row in dataset(data.uri).to_table(["x", column]).to_pylist()}


@pytest.mark.parametrize(("key", "stable"), [("_rowaddr", False), ("_rowid", False), ("_rowid", True)])
def test_an_update_by_file_shows_old_and_new_values_and_replaces_them_in_place(
    dataset_uri: str, tmp_path: Path, key: str, stable: bool
) -> None:
    data = made(dataset_uri, stable=stable)
    file = file_of(data, tmp_path, "x IN (1, 2, 9)", "s", key)
    preview, done = live(Update(files=(file,), reason="typo"), data)
    assert preview.summary == "update s of 3 of 11 rows, in 2 fragments"
    assert section(preview, "Rows that would change") == {
        "x": ("9", "2", "1"),
        "s": ("old 9", "old 2", "old 1"),
        "s (new)": ("new 9", "new 2", "new 1"),
    }
    assert (done.read_version, done.version, done.facts) == (2, 3, {"matching_rows": 3})
    assert (done.after.rows, done.after.fragments, done.after.deleted_rows) == (11, 3, 1)
    assert texts(data, "s") == {x: f"{'new' if x in (1, 2, 9) else 'old'} {x}" for x in range(12) if x != 5}
    transaction = dataset(data.uri).read_transaction(3)
    assert transaction is not None and transaction.transaction_properties[REASON_PROPERTY] == "typo"


def test_columns_of_a_file_are_shown_beside_their_rows_and_added_by_tasks(dataset_uri: str, tmp_path: Path) -> None:
    data = made(dataset_uri)
    verb = AddColumns(files=(file_of(data, tmp_path, "x < 2", "t"),))
    plan, preview = make_plan(verb, data)
    assert preview.summary == "add t to 11 rows"
    assert preview.warnings == ("9 rows that the files do not name get nulls.",)
    assert section(preview, "New columns") == {"column": ("t",), "type": ("string",)}
    assert section(preview, "First rows with the new columns")["t"] == ("new 1", "new 0")
    runner = PicklingRunner()
    done = execute_plan(StoredPlan.from_json(plan.to_json()), data, runner)
    assert (done.version, done.facts) == (3, {"new_columns": "t"})
    assert [verb for verb, _ in runner.jobs] == [
        "read the columns of",
        "stage values for",
        "locate rows of",
        "order rows of",
        "add columns to",
    ]
    assert texts(data, "t") == {x: f"new {x}" if x < 2 else None for x in range(12) if x != 5}


LOOKS = ["read the columns of", "locate rows of", "count named rows of", "read first rows for"]


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize(("key", "stable"), [("_rowaddr", False), ("_rowid", False), ("_rowid", True)])
def test_tasks_look_at_files_as_this_process_does_and_leave_nothing(
    dataset_uri: str, tmp_path: Path, name: str, key: str, stable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, (column, make) = made(dataset_uri, stable=stable), VERBS[name]
    verb = make(file_of(data, tmp_path, "x != 3", column, key))
    _, here = make_plan(verb, data)
    before, runner = sorted(Path(data.uri).rglob("*")), PicklingRunner()
    monkeypatch.setattr(row_files, "_read_here", None)
    monkeypatch.setattr(row_files, "_ROWS_AT_ONCE", 1)
    monkeypatch.setattr(row_buckets, "_PAIRS_PER_BUCKET", 5)
    _, by_tasks = make_plan(verb, data, runner)
    assert by_tasks == here and here.sections
    assert runner.jobs == [*zip(LOOKS, (1, 1, 3, 1), strict=True)]
    assert sorted(Path(data.uri).rglob("*")) == before


def test_tasks_take_the_first_rows_of_the_first_files_that_have_some(dataset_uri: str, tmp_path: Path) -> None:
    data, files = made(dataset_uri), tuple(str(tmp_path / f"{number}.csv") for number in range(5))
    for file, addresses in zip(files, ((), (3, 2), (), (1, 1 << 32, 2 << 32), (0, 2 << 32 | 1)), strict=True):
        Path(file).write_text("_rowaddr,s\n" + "".join(f"{address},new {address}\n" for address in addresses))
    verb, runner = Update(files=files), PicklingRunner()
    _, preview = make_plan(verb, data, runner)
    assert preview == make_plan(verb, data)[1]
    assert section(preview, "Rows that would change (the first 5 of 7)")["x"] == ("3", "2", "1", "4", "8")
    assert runner.jobs[-1] == (LOOKS[-1], 2)


def test_what_tasks_tell_of_a_file_does_not_grow_with_its_rows(dataset_uri: str, tmp_path: Path) -> None:
    data, file = write_dataset(pa.table({"s": ["old"] * 40_000}), dataset_uri), str(tmp_path / "values.parquet")
    pyarrow.parquet.write_table(pa.table({"_rowaddr": range(40_000), "s": ["new"] * 40_000}), file)
    runner = PicklingRunner()
    _, preview = make_plan(Update(files=(file,)), data, runner)
    assert preview.facts == {"matching_rows": 40_000}
    assert max(runner.outcome_bytes) < 2048


def test_text_is_read_in_the_types_of_the_table_and_files_are_read_together(dataset_uri: str, tmp_path: Path) -> None:
    data = made(dataset_uri)
    files = tuple(str(tmp_path / f"{number}.csv") for number in range(2))
    for number, file in enumerate(files):
        Path(file).write_text(f"_rowaddr,s\n{number},007\n")
    preview, done = live(Update(files=files), data)
    assert preview.facts == done.facts == {"matching_rows": 2}
    assert section(preview, "Rows that would change")["s (new)"] == ("007", "007")
    assert [texts(data, "s")[x] for x in range(3)] == ["007", "007", "old 2"]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("_rowaddr,s\n0,a\n", "s\nb\n", r"2\.csv has no column '_rowaddr'"),
        ("_rowaddr,s\n0,a\n", "_rowid,s\n1,b\n", r"1\.csv has no column '_rowid'"),
        ("_rowaddr,s\n0,a\n", "_rowaddr,x\n1,1\n", r"1\.csv has no column 'x'"),
        ("_rowaddr,s\n0,a\n", "_rowaddr,s\n-1,b\n", r"2\.csv: line 2: column '_rowaddr': '-1' is no uint64"),
        ("_rowaddr,s\n0,a\n", "_rowaddr,s\n1.5,b\n", r"2\.csv: line 2: column '_rowaddr': '1\.5' is no uint64"),
        ("_rowaddr,x\n0,1\n", "_rowaddr,x\n1,many\n", r"2\.csv: line 2: column 'x': 'many' is no int64"),
    ],
)
def test_a_preview_refuses_what_the_execution_does_not_read(
    dataset_uri: str, tmp_path: Path, first: str, second: str, message: str
) -> None:
    data, files = made(dataset_uri), (str(tmp_path / "1.csv"), str(tmp_path / "2.csv"))
    for file, content in zip(files, (first, second), strict=True):
        Path(file).write_text(content)
    for attempt in (make_plan, do_now):
        with pytest.raises((SchemaMismatch, RawFileRefused), match=message):
            attempt(Update(files=files), data)


@pytest.mark.parametrize(
    "rows", [{"_rowaddr": [-1], "s": ["a"]}, {"_rowaddr": [1], "s": [1]}, {"_rowaddr": ["1"], "s": ["a"]}]
)
def test_a_preview_refuses_values_of_other_types(dataset_uri: str, tmp_path: Path, rows: dict[str, list[Any]]) -> None:
    data, file = made(dataset_uri), str(tmp_path / "values.parquet")
    pyarrow.parquet.write_table(pa.table(rows), file)
    for attempt in (make_plan, do_now):
        with pytest.raises(SchemaMismatch, match=" in the table and "):
            attempt(Update(files=(file,)), data)


def test_json_of_a_file_becomes_json_of_the_table(dataset_uri: str, tmp_path: Path) -> None:
    data = write_dataset(pa.table({"j": pa.array(['{"a": 1}'] * 2, pa.json_())}), dataset_uri)
    file = tmp_path / "values.csv"
    file.write_text('_rowaddr,j\n1,"{""b"": 2}"\n')
    preview, _ = live(Update(files=(str(file),)), data)
    assert section(preview, "Rows that would change")["j (new)"] == ('{"b": 2}',)
    assert dataset(data.uri).count_rows("json_get_int(j, 'b') = 2") == 1


def test_old_and_new_values_of_the_first_columns_are_shown_if_there_is_no_room_for_all(
    dataset_uri: str, tmp_path: Path
) -> None:
    names = [f"c{number}" for number in range(6)]
    data = write_dataset(pa.table({name: ["old"] for name in names}), dataset_uri)
    file = tmp_path / "values.csv"
    file.write_text(f"_rowaddr,{','.join(names)}\n0{',new' * 6}\n")
    for verb in (Update(files=(str(file),)), Update(dict.fromkeys(names, "'new'"))):
        _, preview = make_plan(verb, data)
        shown = section(preview, "Rows that would change")
        assert shown == {**dict.fromkeys(names[:4], ("old",)), **{f"{name} (new)": ("new",) for name in names[:4]}}


@pytest.mark.parametrize("name", VERBS)
def test_a_plan_is_refused_when_its_file_has_changed(dataset_uri: str, tmp_path: Path, name: str) -> None:
    data, (column, make) = made(dataset_uri), VERBS[name]
    verb = make(file_of(data, tmp_path, "x < 3", column))
    plan, _ = make_plan(verb, data)
    assert list(plan.sources) == [str(tmp_path / "values.parquet")]
    file_of(data, tmp_path, "x < 4", column)
    with pytest.raises(PlanOutdated, match=r"values.parquet has changed since the plan"):
        execute_plan(plan, data)
    assert dataset(data.uri).version == 2
    assert do_now(verb, data).version == 3


def appended(data: LanceDataset) -> None:
    data.insert(pa.table({"x": [20], "s": ["more"]}))


def compacted(data: LanceDataset) -> None:
    data.optimize.compact_files()


def changed(data: LanceDataset) -> None:
    data.update({"s": "'other'"}, "x = 1")


@pytest.mark.parametrize(
    ("name", "stable", "change", "holds"),
    [
        ("update", False, appended, True),
        ("update", False, compacted, False),
        ("update", False, changed, False),
        ("update", True, appended, True),
        ("update", True, changed, False),
        ("add_columns", False, appended, False),
        ("add_columns", False, compacted, False),
        ("add_columns", True, appended, True),
    ],
)
def test_a_plan_is_executed_on_its_version_unless_a_newer_one_contradicts_it(
    dataset_uri: str, tmp_path: Path, name: str, stable: bool, change: Change, holds: bool
) -> None:
    data, (column, make) = made(dataset_uri, stable=stable), VERBS[name]
    key = "_rowid" if stable else "_rowaddr"
    plan, _ = make_plan(make(file_of(data, tmp_path, "x IN (0, 1)", column, key)), data)
    change(dataset(data.uri))
    newest = dataset(data.uri)
    if holds:
        execute_plan(plan, newest)
        assert [texts(data, column)[x] for x in (0, 1)] == ["new 0", "new 1"]
        return
    with pytest.raises(PlanOutdated, match=f"{name} was planned on version 2, and newer versions contradict it: .*3"):
        execute_plan(plan, newest)
    assert dataset(data.uri).version == newest.version


@pytest.mark.parametrize(
    ("verb", "content", "message"),
    [
        (Update({"s": "'n'"}, files=("f",)), "", "give either values, or files"),
        (Update(files=("f",), predicate="x = 1"), "", "belong to values"),
        (Update(files=("f",), at_most_rows=1), "", "belong to values"),
        (Update({"s": "'n'"}, checkpoint="c"), "", "checkpoint belongs to files"),
        (AddColumns({"y": "x"}, files=("f",)), "", "give either values, a function, or files"),
        (Update(files=("f.csv",)), "s\nn\n", "f.csv has no column _rowaddr or _rowid that names rows; it has s"),
        (Update(files=("f.csv",)), "_rowaddr\n1\n", "f.csv has no column of values"),
        (Update(files=("f.csv",)), "_rowaddr,y\n1,n\n", "has no column 'y', which the files have"),
        (AddColumns(files=("f.csv",)), "_rowaddr,s\n1,n\n", "has column 's' already"),
        (Update(files=("f.csv",)), "_rowaddr,s\n1,n\n1,m\n", r"several rows of the data name the same row"),
        (AddColumns(files=("f.csv",)), f"_rowaddr,y\n{1 << 32 | 1},n\n", "1 rows that the data names are deleted"),
        (AddColumns(files=("f.csv",)), "_rowaddr,y\n,n\n", "1 rows of the data have no _rowaddr"),
        (Update(files=("in.lance",)), "", "in.lance is a dataset"),
    ],
)
def test_what_the_execution_would_refuse_is_refused_by_the_preview(
    dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: Verb, content: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    data = made(dataset_uri)
    Path("f.csv").write_text(content)
    before = sorted(Path(data.uri).rglob("*"))
    for runner in (None, PicklingRunner()):
        with pytest.raises(InvalidInput, match=message):
            make_plan(verb, data, runner)
        with pytest.raises((InvalidInput, SchemaMismatch)):
            do_now(verb, data, runner)
    assert dataset(data.uri).version == 2
    assert sorted(Path(data.uri).rglob("*")) == before


def test_rows_of_an_empty_table_are_refused_also_by_tasks(dataset_uri: str, tmp_path: Path) -> None:
    data, file = write_dataset(pa.table({"s": pa.array([], pa.string())}), dataset_uri), tmp_path / "values.csv"
    file.write_text("_rowaddr,s\n0,new\n")
    for runner in (None, PicklingRunner()):
        for attempt in (make_plan, do_now):
            with pytest.raises(InvalidInput, match=r"has no fragment of _rowaddr 0 "):
                attempt(Update(files=(str(file),)), data, runner)

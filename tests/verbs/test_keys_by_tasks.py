"""Previews and bounds of verbs by keys: tasks of a runner read source and table, and give the same as this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from lance_ops.api import LanceDataset, dataset, merge_source, write_dataset
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.core.errors import InvalidInput, LanceOpsError, UnsupportedFeature
from lance_ops.runners import InThreads, Runner
from lance_ops.verbs import DeleteRows, Erase, Upsert, Verb, do_now, make_plan
from lance_ops.verbs.rows.by_keys import given_keys, keys_by_tasks
from tests.pickling_runner import PicklingRunner

COUNTS = [f"count matches ({step}) in" for step in ("keys", "join")]
KEYS = pa.table({"x": [1, 2, 50, 60, None], "s": [*"abcd", None]})

SOURCES: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "a dataset": lambda folder: (write_dataset(KEYS, str(folder / "in.lance")).uri,),
    "raw files": lambda folder: raw(folder, KEYS, KEYS.slice(3)),
}
VERBS: dict[str, Callable[[tuple[str, ...]], Verb]] = {
    "delete": lambda files: DeleteRows(key_files=files, on=("x",), reason="r"),
    "upsert": lambda files: Upsert(files, ("x",)),
    "upsert that deletes": lambda files: Upsert(files, ("x",), matched="delete", insert=False),
    "upsert of all": lambda files: Upsert(files, ("x",), insert=False, delete_unmatched="x > 8"),
    "erase": lambda files: Erase(key_files=files, on=("x",), reason="r"),
}


BOUNDED: dict[str, Callable[[tuple[str, ...]], Verb]] = {
    "delete": lambda files: DeleteRows(key_files=files, on=("x",), reason="r", at_most_rows=2),
    "upsert": lambda files: Upsert(
        files, ("x",), matched="keep", insert=False, delete_unmatched="x > 8", at_most_rows=5
    ),
}


def raw(folder: Path, *tables: pa.Table) -> tuple[str, ...]:
    files = tuple(str(folder / f"{number}.parquet") for number in range(len(tables)))
    for file, table in zip(files, tables, strict=True):
        pyarrow.parquet.write_table(table, file)
    return files


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Twelve rows in three fragments."""
    rows = pa.table({"x": range(12), "s": ["old"] * 12})
    return write_dataset(rows, dataset_uri, max_rows_per_file=4)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", VERBS)
def test_tasks_preview_a_verb_by_keys_as_this_process_does(
    numbers: LanceDataset, tmp_path: Path, source: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb, runner = VERBS[name](SOURCES[source](tmp_path)), PicklingRunner()
    _, here = make_plan(verb, numbers)
    before = sorted(Path(numbers.uri).rglob("*"))

    def refused(*_: object) -> None:
        raise AssertionError("this process read the source's keys")

    monkeypatch.setattr(given_keys, "source_rows", refused)
    _, by_tasks = make_plan(verb, numbers, runner)
    assert by_tasks == here and here.facts["matching_rows"] == 2
    assert sorted(Path(numbers.uri).rglob("*")) == before
    done = [verb for verb, _ in runner.jobs if not verb.startswith(("read the columns", "ingest"))]
    assert done[0] == "read keys for" if name == "erase" else done[:2] == COUNTS
    assert max(runner.outcome_bytes) < 8192


@pytest.mark.parametrize("name", ["delete", "upsert"])
def test_tasks_count_the_rows_that_a_bound_allows(numbers: LanceDataset, tmp_path: Path, name: str) -> None:
    files = SOURCES["raw files"](tmp_path)
    verbs: dict[str, Callable[[int], Verb]] = {
        "delete": lambda most: DeleteRows(key_files=files, on=("x",), reason="r", at_most_rows=most),
        "upsert": lambda most: Upsert(files, ("x",), matched="keep", delete_unmatched="x > 8", at_most_rows=most),
    }
    num_rows = {"delete": 2, "upsert": 5}[name]
    runner = PicklingRunner()
    with pytest.raises(InvalidInput, match=f"^{num_rows} rows match"):
        do_now(verbs[name](num_rows - 1), numbers, runner)
    assert [verb for verb, _ in runner.jobs][-2:] == COUNTS
    assert dataset(numbers.uri).version == 1
    do_now(verbs[name](num_rows), numbers, runner)
    assert dataset(numbers.uri).version == 2


@pytest.mark.parametrize("runner", [PicklingRunner, InThreads], ids=["elsewhere", "a large source in threads"])
@pytest.mark.parametrize("name", BOUNDED)
def test_raw_files_are_staged_once_to_be_counted_and_to_change_rows_also_after_a_conflict(
    numbers: LanceDataset,
    tmp_path: Path,
    name: str,
    runner: Callable[[], Runner],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verb, num_rows = BOUNDED[name](raw(tmp_path, KEYS, KEYS.slice(3))), []
    staged, checked = merge_source._Stage.files, LanceDataset.of(numbers.snapshot)
    monkeypatch.setattr(given_keys, "_LARGE_BYTES", 100)

    def stage(self: Any, *given: Any) -> Any:
        made = staged(self, *given)
        num_rows.append(made.version.open().num_rows)
        return made

    def count(*given: Any, **options: Any) -> Any:
        counts = count_matches(*given, **options)
        if dataset(numbers.uri).version == 1:
            checked.update({"s": "'other'"}, "x IN (1, 9)")  # another writer, after the check
        return counts

    monkeypatch.setattr(merge_source._Stage, "files", stage)
    count_matches = by_tasks.count_matches
    monkeypatch.setattr(by_tasks, "count_matches", count)
    done = do_now(verb, numbers, runner())
    assert (done.version, num_rows) == (3, [7])
    assert not [path for path in Path(numbers.uri, "data").iterdir() if path.is_dir()]
    left = {"delete": {0, *range(3, 12)}, "upsert": {1, 2, *range(9)}}[name]
    assert set(dataset(numbers.uri).to_table()["x"].to_pylist()) == left


def test_tasks_count_a_large_source_also_in_threads(
    numbers: LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb = VERBS["upsert"](SOURCES["raw files"](tmp_path))
    _, here = make_plan(verb, numbers, InThreads(2))
    monkeypatch.setattr(given_keys, "_LARGE_BYTES", 100)
    monkeypatch.setattr(given_keys, "source_rows", None)
    assert make_plan(verb, numbers, InThreads(2))[1] == here


@pytest.mark.parametrize("name", VERBS)
def test_tasks_refuse_a_source_without_the_key(numbers: LanceDataset, tmp_path: Path, name: str) -> None:
    (file,) = raw(tmp_path, pa.table({"s": ["a"]}))
    for runner in (None, PicklingRunner()):
        with pytest.raises(LanceOpsError, match="no column 'x'"):
            make_plan(VERBS[name]((file,)), numbers, runner)


@pytest.mark.parametrize("runner", [InThreads(), PicklingRunner()], ids=["in threads", "elsewhere"])
def test_a_key_in_a_struct_is_counted_and_deleted_and_refused_by_an_erasure(
    dataset_uri: str, tmp_path: Path, runner: Runner
) -> None:
    nested = pa.table({"s": pa.StructArray.from_arrays([pa.array(range(6))], ["x"]), "n": range(6)})
    data = write_dataset(nested, dataset_uri, max_rows_per_file=2)
    keys = write_dataset(nested.slice(1, 2).select(["s"]), str(tmp_path / "keys.lance")).uri
    verb = DeleteRows(key_files=(keys,), on=("s.x", "s.x"), reason="r")
    _, preview = make_plan(verb, data, runner)
    assert preview.facts == do_now(verb, data, runner).facts == {"matching_rows": 2}
    with pytest.raises(UnsupportedFeature, match=r"column 's\.x'.*a key in a struct"):
        make_plan(Erase(key_files=(keys,), on=("s.x",), reason="r"), data, runner)


@pytest.mark.parametrize("source", SOURCES)
def test_a_column_that_is_named_twice_counts_once(numbers: LanceDataset, tmp_path: Path, source: str) -> None:
    files = SOURCES[source](tmp_path)
    for verb in (DeleteRows(key_files=files, on=("x", "x"), reason="r"), Upsert(files, ("x", "x"))):
        for runner in (InThreads(), PicklingRunner()):
            assert make_plan(verb, numbers, runner)[1].facts["matching_rows"] == 2
    assert make_plan(Erase(key_files=files, on=("x", "x"), reason="r"), numbers)[1].facts["matching_rows"] == 2


@pytest.mark.parametrize("source", SOURCES)
def test_tasks_read_the_keys_of_an_erasure_and_each_comes_back_once(
    numbers: LanceDataset, tmp_path: Path, source: str
) -> None:
    many = pa.table({"x": [number % 40_000 for number in range(80_000)], "s": ["new"] * 80_000})
    files = (
        (write_dataset(many, str(tmp_path / "in.lance")).uri,) if source == "a dataset" else raw(tmp_path, many, many)
    )
    runner = PicklingRunner()
    found = keys_by_tasks.read_distinct_keys(numbers, runner, files, ("x", "s", "x"))
    assert found.schema.names == ["x", "s"]
    assert sorted(found["x"].to_pylist()) == list(range(40_000))
    assert max(runner.outcome_bytes) < 40_000 * 32
    before = numbers.count_rows()
    facts = do_now(Erase(key_files=files, on=("x", "s"), reason="r"), numbers, runner).facts
    assert facts["erased_rows"] == 0
    assert numbers.count_rows() == before

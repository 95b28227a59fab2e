"""Merges and deletes by keys on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from lance_ops.api import dataset, write_dataset
from lance_ops.cli import extras
from lance_ops.verbs import Execution, Upsert, VerbResult
from tests.cli.calls import answer, run, text
from tests.pickling_runner import PicklingRunner


@pytest.fixture
def numbers(dataset_uri: str) -> str:
    """Twelve rows in three fragments."""
    table = pa.table({"x": range(12), "v": [0] * 12})
    write_dataset(table, dataset_uri, max_rows_per_file=4)
    return dataset_uri


@pytest.fixture
def changes(tmp_path: Path) -> str:
    """A Parquet file of rows 10 to 13."""
    pq.write_table(pa.table({"x": range(10, 14), "v": [1, 2, 3, 4]}), tmp_path / "changes.parquet")
    return str(tmp_path / "changes.parquet")


def values(uri: str) -> dict[int, int]:
    found = dataset(uri).to_table()
    return dict(zip(found["x"].to_pylist(), found["v"].to_pylist(), strict=True))


def test_merge_updates_and_inserts_rows_of_raw_files(numbers: str, changes: str) -> None:
    shown = text("merge", numbers, changes, "--on", "x")
    assert shown.splitlines()[0] == "inserted 2 rows, updated 2 rows, deleted 0 rows: version 2"
    assert values(numbers) == dict.fromkeys(range(10), 0) | {10: 1, 11: 2, 12: 3, 13: 4}
    assert text("merge", numbers, changes, "--on", "x", "--no-update") == "no row changes; version 2 stays\n"


def test_merge_takes_conditions_and_deletes(numbers: str, changes: str) -> None:
    found = answer("merge", numbers, changes, "--on", "x", "--if", "source.v > 1", "--no-insert")
    assert (found["num_inserted_rows"], found["num_updated_rows"], found["num_deleted_rows"]) == (0, 1, 0)
    assert (found["version"], found["dry_run"]) == (2, False)
    found = answer("merge", numbers, changes, "--on", "x", "--delete-matched", "--delete-unmatched", "x < 3")
    assert (found["num_deleted_rows"], sorted(values(numbers))) == (5, list(range(3, 10)))


def test_merge_takes_a_dataset_and_its_tasks_may_run_elsewhere(
    numbers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, elsewhere = str(tmp_path / "s.lance"), PicklingRunner()
    write_dataset(pa.table({"x": [1, 20], "v": [7, 8]}), source)

    def started(master: str, _: Any) -> PicklingRunner:
        assert master == "local[2]"
        return elsewhere

    monkeypatch.setattr(extras, "start_spark", started, raising=False)
    assert answer("merge", numbers, source, "--on", "x", "--spark", "local[2]")["num_updated_rows"] == 1
    assert answer("delete", numbers, "--keys", source, "--on", "x", "--spark", "local[2]")["num_deleted_rows"] == 2
    assert [verb for verb, _ in elsewhere.jobs] == [f"merge ({each}) into" for each in ("keys", "join", "rows")] * 2


def test_a_merge_is_told_by_the_names_of_its_counts(
    numbers: str, changes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Upsert.execute

    def with_more_facts(verb: Upsert, work: Execution) -> VerbResult:
        done = execute(verb, work)
        return VerbResult({"more": 1, **dict(reversed(list(done.facts.items())))}, done.committed)

    monkeypatch.setattr(Upsert, "execute", with_more_facts)
    shown = text("merge", numbers, changes, "--on", "x", "--no-update")
    assert shown.splitlines()[0] == "inserted 2 rows, updated 0 rows, deleted 0 rows: version 2"


def test_previews_and_bounds_count_by_tasks_of_spark(
    numbers: str, changes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = PicklingRunner()
    monkeypatch.setattr(extras, "start_spark", lambda *_: elsewhere, raising=False)
    by_key = ("--on", "x", "--spark", "local[2]")

    def jobs() -> list[str]:
        done = [verb for verb, _ in elsewhere.jobs if not verb.startswith(("read the columns", "ingest"))]
        elsewhere.jobs.clear()
        return done

    counts = ["count matches (keys) in", "count matches (join) in"]
    merged = text("merge", numbers, changes, *by_key, "--dry-run")
    assert merged.startswith("insert 2, update 2 and delete 0 rows") and jobs() == counts
    deleted = text("delete", numbers, "--keys", changes, *by_key, "--dry-run")
    assert deleted.startswith("delete 2 of 12 rows") and jobs() == counts
    for given in (("merge", numbers, changes), ("delete", numbers, "--keys", changes)):
        version = dataset(numbers).version
        assert run(*given, *by_key, "--at-most-rows", "1").exit_code == 1
        assert jobs() == counts and dataset(numbers).version == version
        assert answer(*given, *by_key, "--at-most-rows", "2")["version"] == version + 1
        assert jobs() == [*counts, *(f"merge ({each}) into" for each in ("keys", "join", "rows"))]
        dataset(numbers, 1).restore()


def test_delete_takes_keys_of_several_files(numbers: str, changes: str, tmp_path: Path) -> None:
    pacsv.write_csv(pa.table({"x": [1, 1, 99]}), tmp_path / "more.csv")
    keys = ("--keys", changes, "--keys", str(tmp_path / "more.csv"))
    assert text("delete", numbers, *keys, "--on", "x").splitlines() == [
        "deleted 3 rows: version 2",
        "rows 12 to 9; deleted rows still stored 0 to 3",
    ]
    assert sorted(values(numbers)) == [0, *range(2, 10)]
    assert text("delete", numbers, *keys, "--on", "x") == "no row matches; version 2 stays\n"


@pytest.mark.parametrize(
    "given",
    [(), ("x = 1", "--keys", "k.csv", "--on", "x"), ("--keys", "k.csv"), ("x = 1", "--on", "x")],
    ids=["nothing", "both", "no column", "no file"],
)
def test_a_delete_that_does_not_say_which_rows_is_exit_code_2(numbers: str, given: tuple[str, ...]) -> None:
    assert run("delete", numbers, *given).exit_code == 2
    assert dataset(numbers).version == 1

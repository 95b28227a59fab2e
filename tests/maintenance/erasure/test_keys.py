"""An erasure by keys joins them with the rows of every version; no task carries them."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.core.errors import (
    CorruptFile,
    InvalidFilter,
    InvalidInput,
    ObjectNotFound,
    SchemaMismatch,
    UnsupportedFeature,
)
from lance_ops.maintenance.erasure import ErasureOptions, Subject, erase, plan_erasure
from lance_ops.maintenance.erasure import erasing as erasing_module
from lance_ops.maintenance.erasure.subject import shared_table
from lance_ops.maintenance.erasure.subject.key_join import HasKey
from lance_ops.maintenance.erasure.subject.shared_table import SharedTable, shared
from lance_ops.runners import InThreads
from lance_ops.store import LocalStore
from tests.pickling_runner import PicklingRunner

ALL = ErasureOptions("request 12", remove_tags=True, rewrite_branches=True)
MANY = 1_000_000


def name_of(number: int) -> str:
    return f"subject-{number:07}"


def people(uri: str, num_rows: int = 4_000, **options: Any) -> lance_ops.LanceDataset:
    """Rows of two appends, with an index; every hundredth row's name is a subject's. Some are deleted or updated."""
    names = [name_of(250 * each) if each % 100 == 0 else f"somebody {each}" for each in range(num_rows)]
    rows = pa.table({"name": names, "day": [each % 7 for each in range(num_rows)], "id": range(num_rows)})
    lance_ops.write_dataset(rows.slice(0, num_rows // 2), uri, max_rows_per_file=500, **options)
    made = lance_ops.write_dataset(rows.slice(num_rows // 2), uri, mode="append", max_rows_per_file=500)
    made.create_scalar_index("name", "BTREE")
    made.delete("id = 100")
    made.update({"day": "9"}, "id = 200")
    return made


def holders(root: str, value: str) -> list[str]:
    return sorted(
        str(path.relative_to(root))
        for path in Path(root).rglob("*")
        if path.is_file() and value.encode() in path.read_bytes()
    )


def sealed(root: str) -> list[Path]:
    return list(Path(root).rglob("*.sealed"))


def test_a_million_keys_leave_every_version_and_no_task_carries_them(dataset_uri: str) -> None:
    made = people(dataset_uri)
    made.tags.create("quarter", 2)
    made.create_branch("trial", 3).delete("id = 0")
    subjects = [name_of(250 * each) for each in range(0, 4_000, 100)]
    assert holders(dataset_uri, "subject-00")
    keys = pa.table({"name": [name_of(number) for number in range(MANY)]})
    runner = PicklingRunner()
    report = made.erase(
        keys=keys, on="name", reason="request 12", remove_tags=True, rewrite_branches=True, runner=runner
    )
    assert report.is_proven, report.unproven
    assert max(runner.task_bytes) < 4096
    assert report.erased_rows == (len(subjects) - 1) + (len(subjects) - 1)  # main lacks row 100, the branch row 0
    assert report.searched_values == MANY
    assert holders(dataset_uri, "subject-0") == []
    assert sealed(dataset_uri) == []
    left = lance_ops.dataset(dataset_uri)
    assert left.count_rows() == 4_000 - len(subjects)
    assert left.checkout_version(("trial", None)).count_rows("name LIKE 'subject%'") == 0
    assert left.verify().ok


@pytest.mark.parametrize("runner", [InThreads(2), PicklingRunner()], ids=["threads", "pickles"])
def test_keys_of_several_columns_have_no_limit(dataset_uri: str, runner: Any) -> None:
    rows = pa.table({"a": np.arange(60_000) // 10, "b": [f"part {each % 10}" for each in range(60_000)]})
    made = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=20_000)
    keys = rows.filter(pc.not_equal(rows["b"], "part 3"))
    report = made.erase(keys=keys, on=["a", "b"], reason="request 12", runner=runner)
    assert report.is_proven, report.unproven
    assert report.erased_rows == keys.num_rows == 54_000
    assert made.to_table().equals(rows.filter(pc.equal(rows["b"], "part 3")))


def _dataset(folder: Path, keys: pa.Table) -> Any:
    return lance_ops.write_dataset(keys, folder / "keys.lance")


def _files(folder: Path, keys: pa.Table) -> Any:
    for at in range(2):
        pq.write_table(keys.slice(at, None if at else 1), folder / f"{at}.parquet")
    return [str(folder / f"{at}.parquet") for at in range(2)]


SOURCES: dict[str, Callable[[Path, pa.Table], Any]] = {
    "a table": lambda _, keys: keys,
    "a reader": lambda _, keys: keys.to_reader(),
    "a list": lambda _, keys: keys["id"].to_pylist(),
    "an array": lambda _, keys: keys["id"].combine_chunks().cast(pa.int16()),
    "a dataset": _dataset,
    "a path": lambda folder, keys: str(folder / _dataset(folder, keys).uri),
    "a scanner": lambda folder, keys: _dataset(folder, keys).scanner(["id"]),
    "files": _files,
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("runner", [None, PicklingRunner()], ids=["threads", "pickles"])
def test_keys_come_from_whatever_delete_by_keys_takes(
    source: str, runner: Any, dataset_uri: str, tmp_path: Path
) -> None:
    made = lance_ops.write_dataset(pa.table({"id": range(20), "day": range(20)}), dataset_uri, max_rows_per_file=5)
    keys = SOURCES[source](tmp_path, pa.table({"id": [3, 11, 11, 99], "day": [0, 0, 0, 0]}))
    report = made.erase(keys=keys, on="id", reason="request 12", runner=runner)
    assert report.is_proven, report.unproven
    assert sorted(made.to_table()["id"].to_pylist()) == [each for each in range(20) if each not in (3, 11)]
    assert not list(Path(dataset_uri, "data").glob("merge-*"))


def test_a_key_in_a_struct_and_keys_with_nulls(dataset_uri: str) -> None:
    rows = pa.table({"s": [{"x": each if each != 2 else None} for each in range(6)]})
    made = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=2)
    report = made.erase(keys=pa.table({"s": [{"x": None}, {"x": 4}]}), on="s.x", reason="request 12")
    assert report.is_proven, report.unproven
    assert [each["x"] for each in made.to_table()["s"].to_pylist()] == [0, 1, None, 3, 5]


def test_floats_are_equal_as_in_a_merge(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(pa.table({"x": [0.0, -0.0, float("nan"), 1.5, None]}), dataset_uri)
    made.erase(keys=[-0.0, float("nan")], on="x", reason="request 12")
    assert made.to_table()["x"].to_pylist() == [1.5, None]


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        (pa.int32(), pa.int64(), [3, 1 << 40]),
        (pa.int64(), pa.int32(), [3]),
        (pa.float32(), pa.float64(), [3.0, 0.1]),
        (pa.string(), pa.large_string(), ["3", "no"]),
        (pa.timestamp("s"), pa.timestamp("us"), [3_000_000, 3_000_001]),
    ],
    ids=str,
)
def test_old_versions_that_store_the_keys_in_another_type_are_searched(
    dataset_uri: str, before: pa.DataType, after: pa.DataType, keys: list[Any]
) -> None:
    values = pa.array([str(each) for each in range(8)]).cast(before) if pa.types.is_string(before) else None
    stored = pa.array(range(8)).cast(before) if values is None else values
    made = lance_ops.write_dataset(pa.table({"k": stored, "id": range(8)}), dataset_uri, max_rows_per_file=4)
    made.alter_columns({"path": "k", "data_type": after})
    found = plan_erasure(made.snapshot, Subject.of_keys(pa.table({"k": pa.array(keys, after)})))
    assert set(found.main.holding) == {1, 2}
    assert found.num_live_rows == 1
    report = made.erase(keys=pa.array(keys, after), on="k", reason="request 12")
    assert report.is_proven, report.unproven
    assert sorted(made.to_table()["id"].to_pylist()) == [0, 1, 2, 4, 5, 6, 7]
    assert min(each["version"] for each in made.versions()) > 2


def test_an_old_version_without_a_key_column_goes_with_the_files_that_it_shares(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(pa.table({"id": range(10)}), dataset_uri, max_rows_per_file=5)
    made.add_columns({"account": "id + 500"})
    report = made.erase(keys=pa.table({"id": [4, 7], "account": [504, 1]}), on=["id", "account"], reason="request 12")
    assert report.is_proven, report.unproven
    assert sorted(made.to_table()["id"].to_pylist()) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert min(each["version"] for each in made.versions()) > 2


def test_an_index_tells_by_its_values_whether_it_has_a_key(dataset_uri: str) -> None:
    made = people(dataset_uri)
    gone = Subject.of_keys(pa.table({"name": [name_of(250 * 100)]}))  # was deleted, and is in the index
    found = plan_erasure(made.snapshot, gone)
    assert found.num_live_rows == 0
    assert found.main.stale_indices == {"name_idx"}
    assert plan_erasure(made.snapshot, Subject.of_keys(pa.table({"name": ["nobody at all"]}))).is_clean


@pytest.mark.parametrize(
    ("given", "error", "problem"),
    [
        ({}, InvalidInput, "give either a filter, or keys with on"),
        ({"matching": "id = 1", "keys": [1], "on": "id"}, InvalidInput, "give either a filter, or keys with on"),
        ({"keys": [1]}, InvalidInput, "give either a filter, or keys with on"),
        ({"matching": "id = 1", "on": "id"}, InvalidInput, "give either a filter, or keys with on"),
        ({"keys": pa.array([], pa.int64()), "on": "id"}, InvalidInput, "at least one key"),
        ({"keys": [1], "on": "nope"}, InvalidInput, "nope"),
        ({"keys": ["x y"], "on": "id"}, InvalidInput, "x y"),
        ({"keys": pa.array(["x"]), "on": "id"}, SchemaMismatch, "'id'"),
        ({"keys": [2.5], "on": "id"}, SchemaMismatch, "id"),
        ({"keys": pa.table({"l": [[1]]}), "on": "l"}, UnsupportedFeature, "keys of type list"),
        ({"keys": [1], "on": "_rowid"}, InvalidInput, "_rowid"),
    ],
)
def test_keys_that_cannot_be_used_are_refused(
    dataset_uri: str, given: dict[str, Any], error: type[Exception], problem: str
) -> None:
    made = lance_ops.write_dataset(pa.table({"id": range(4), "l": [[1]] * 4}), dataset_uri)
    with pytest.raises(error, match=problem):
        made.erase(**given, reason="request 12")
    assert made.version == lance_ops.dataset(dataset_uri).version == 1


def test_keys_that_no_value_of_the_newest_version_can_have_are_refused(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(pa.table({"id": range(4)}), dataset_uri)
    for keys, problem in (
        (pa.table({"no": [1]}), "'no'"),
        (pa.table({"id": pa.array([b"abc"], pa.binary(3))}), "fixed_size_binary.*'id'"),
    ):
        with pytest.raises(InvalidFilter, match=problem):
            plan_erasure(made.snapshot, Subject.of_keys(keys))


def test_the_file_of_the_keys_tells_nothing_and_goes_after_a_failure(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = people(dataset_uri)
    seen: list[tuple[int, bool]] = []

    def fail(*_: object) -> None:
        (file,) = sealed(dataset_uri)
        seen.append((file.stat().st_size, b"subject" in file.read_bytes()))
        raise ZeroDivisionError

    monkeypatch.setattr(erasing_module, "check_permitted", fail)
    keys = pa.table({"name": [name_of(number) for number in range(10_000)]})
    with pytest.raises(ZeroDivisionError):
        erase(made.snapshot, Subject.of_keys(keys), ALL, PicklingRunner())
    assert seen[0][0] > 10_000 * len(name_of(0))
    assert not seen[0][1]
    assert sealed(dataset_uri) == []


def test_few_keys_go_with_the_tasks_and_threads_need_no_file(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = people(dataset_uri)
    monkeypatch.setattr(shared_table, "_write", None)
    keys = pa.table({"name": [name_of(number) for number in range(100_000)]})
    assert erase(made.snapshot, Subject.of_keys(keys.slice(0, 100)), ALL, PicklingRunner()).is_proven
    assert erase(made.snapshot, Subject.of_keys(keys), ALL, InThreads(2)).is_proven


def test_an_interrupted_erasure_by_keys_goes_on_in_any_order(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = people(dataset_uri)
    keys = pa.table({"name": [name_of(number) for number in range(0, 200_000, 250)]})
    with monkeypatch.context() as patched:
        patched.setattr(erasing_module, "prove", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            erase(made.snapshot, Subject.of_keys(keys), ALL, PicklingRunner())
    (record,) = Path(dataset_uri, "_lance_ops/erasures").glob("*.json")
    report = erase(made.snapshot, Subject.of_keys(pa.concat_tables([keys.slice(7), keys])), ALL, InThreads())
    assert report.is_proven, report.unproven
    assert report.id == record.stem


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_sealed_file_that_a_crash_left_goes_when_it_is_old(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(pa.table({"id": range(100_000)}), dataset_uri)
    folder = Path(dataset_uri, "_lance_ops/erasures")
    folder.mkdir(parents=True)
    old, young = folder / f"{'1' * 32}.sealed", folder / f"{'2' * 32}.sealed"
    for path in (old, young):
        path.write_bytes(os.urandom(100))
    os.utime(old, (time.time() - 8 * 86400,) * 2)
    report = made.erase(keys=np.arange(50_000), on="id", reason="request 12", runner=PicklingRunner())
    assert report.is_proven, report.unproven
    assert sealed(dataset_uri) == [young]
    assert f"_lance_ops/erasures/{young.name}" in [file.path for file in report.files]


def test_a_sealed_file_with_other_bytes_or_without_any_is_an_error(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = lance_ops.write_dataset(pa.table({"id": [1]}), dataset_uri).snapshot
    with shared(main, pa.table({"id": np.arange(100_000)}), PicklingRunner()) as keys:
        (path,) = sealed(dataset_uri)
        there: SharedTable = pickle.loads(pickle.dumps(keys))
        assert len(pickle.dumps(keys)) < 1000
        assert there.table.equals(keys.table)
        monkeypatch.setattr(shared_table, "_HELD_TABLES", shared_table._HeldTables())  # as in another process
        content = bytearray(path.read_bytes())
        content[777] ^= 1
        path.write_bytes(content)
        with pytest.raises(CorruptFile, match=path.name):
            pickle.loads(pickle.dumps(keys)).table  # noqa: B018 # what raises
        path.unlink()
        with pytest.raises(ObjectNotFound):
            pickle.loads(pickle.dumps(keys)).table  # noqa: B018 # what raises


def test_each_process_reads_the_keys_once(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    get = LocalStore.get

    def noted(store: LocalStore, path: str) -> pa.Buffer:
        if path.endswith(".sealed"):
            reads.append(path)
        return get(store, path)

    monkeypatch.setattr(LocalStore, "get", noted)
    made = people(dataset_uri, 40_000)
    runner = PicklingRunner()
    found = plan_erasure(made.snapshot, Subject.of_keys(pa.table({"id": np.arange(0, 60_000, 3)})), runner)
    assert sum(count for verb, count in runner.jobs if verb == "search") >= 4
    assert len(reads) == 1
    assert found.num_live_rows == len(range(0, 40_000, 3))


def test_a_predicate_of_keys_says_what_it_is_and_not_whose(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(pa.table({"id": range(4), "b": range(4)}), dataset_uri)
    bound = HasKey.bind(made.snapshot, SharedTable(pa.table({"id": [1], "b": [2]})))
    assert bound.to_sql() == "(id, b) IN (given keys)"
    assert bound.columns() == ("id", "b")
    assert bound.mask(pa.record_batch({"b": [2, 2, None], "id": [1, 2, 1]})).to_pylist() == [True, False, False]

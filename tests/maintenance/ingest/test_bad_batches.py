"""Batches that cannot be ingested are set aside, and the others are committed."""

from __future__ import annotations

import errno
import io
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.core.schema import SchemaMode
from lance_ops.errors import RawFileRefused, SchemaMismatch, StoreError
from lance_ops.maintenance.ingest import IngestBatch, IngestOptions, RawFile, RawReading, found_file, ingest, raw_files
from lance_ops.maintenance.ingest.decoding.fork_client import FORK_CLIENT
from lance_ops.maintenance.ingest.raw_files import RawReader
from lance_ops.maintenance.ingest.running import ingest_tasks as room
from tests.maintenance.ingest.raw_batches import (
    SET_ASIDE,
    data_files,
    given,
    junk,
    named_files,
    one_each,
    parquet,
    raw,
    stored,
)
from tests.pickling_runner import PicklingRunner


@pytest.mark.parametrize("most", [64, 1, 2])
def test_the_other_batches_are_one_version_and_the_reasons_name_file_column_and_value(
    uri: str, folder: Path, most: int
) -> None:
    (folder / "text.csv").write_text("x\n3\nmany\n")
    wrong = parquet(folder, "wrong.parquet", pa.table({"x": [1], "y": [2]}))
    files = (parquet(folder, "a.parquet"), junk(folder, "junk.parquet"), wrong, raw(folder / "text.csv"))
    last = parquet(folder, "z.parquet", pa.table({"x": [9]}))
    found = given(uri, one_each(*files, last), replace(SET_ASIDE, max_files_per_task=most))
    assert (found.version, found.ingested, found.num_rows) == (2, ("a", "z"), 3)
    assert stored(uri) == [0, 1, 2, 9]
    assert sorted(found.refused) == ["junk", "text", "wrong"]
    assert "junk.parquet" in found.refused["junk"]
    assert "wrong.parquet: column 'y'" in found.refused["wrong"]
    assert "text.csv: line 3: column 'x': 'many'" in found.refused["text"]
    assert data_files(uri) == named_files(uri)


def test_a_batch_with_one_bad_file_leaves_no_row_of_its_other_files(uri: str, folder: Path) -> None:
    good = [parquet(folder, f"part-{number}.parquet", pa.table({"x": [100 + number]})) for number in range(3)]
    torn = IngestBatch("torn", (good[0], junk(folder, "part-3.parquet"), good[1]))
    batches = [IngestBatch("other", (good[2],)), torn, *one_each(parquet(folder, "a.parquet"))]
    found = given(uri, batches, replace(SET_ASIDE, max_files_per_task=2))
    assert (found.ingested, list(found.refused)) == (("other", "a"), ["torn"])
    assert stored(uri) == [0, 1, 2, 102]
    assert data_files(uri) == named_files(uri)


def test_a_batch_that_was_set_aside_is_ingested_when_its_files_are_good(uri: str, folder: Path) -> None:
    assert list(given(uri, one_each(junk(folder, "a.parquet"), parquet(folder, "b.parquet"))).refused) == ["a"]
    found = given(uri, one_each(parquet(folder, "a.parquet"), parquet(folder, "b.parquet")))
    assert (found.ingested, found.skipped, found.refused) == (("a",), ("b",), {})


def test_if_every_batch_is_bad_there_is_no_version(uri: str, folder: Path) -> None:
    found = given(uri, one_each(junk(folder, "a.parquet"), junk(folder, "b.parquet")))
    assert (found.version, found.ingested, sorted(found.refused)) == (None, (), ["a", "b"])
    assert lance_ops.dataset(uri).version == 1
    assert data_files(uri) == named_files(uri)


def test_by_default_a_bad_batch_fails_all(uri: str, folder: Path) -> None:
    good = parquet(folder, "good.parquet")
    for bad, error in (
        (junk(folder, "bad.parquet"), RawFileRefused),
        (parquet(folder, "wrong.parquet", pa.table({"y": [1]})), SchemaMismatch),
    ):
        with pytest.raises(error, match=Path(bad.uri).name):
            given(uri, one_each(good, bad), IngestOptions())
    assert lance_ops.dataset(uri).version == 1
    assert data_files(uri) == named_files(uri)


@pytest.fixture
def bad_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse files named `bad` when their rows have been written."""
    write = room._write_part

    def refusing(*arguments: Any) -> int:
        written = write(*arguments)
        if "bad" in arguments[1].file.uri:
            raise SchemaMismatch("bad.parquet: row 1: a bad value")
        return written

    monkeypatch.setattr(room, "_write_part", refusing)


@pytest.mark.parametrize("most", [64, 1])
@pytest.mark.parametrize("is_new", [False, True], ids=["a table", "no table yet"])
def test_a_batch_that_is_set_aside_leaves_no_trace_in_the_schema(
    dataset_uri: str, folder: Path, bad_value: None, is_new: bool, most: int
) -> None:
    narrow = pa.table({"x": pa.array([1], pa.int32())})
    if not is_new:
        lance_ops.write_dataset(narrow, dataset_uri)
    good = parquet(folder, "good.parquet", narrow.append_column("more", [["m"]]))
    bad = parquet(folder, "bad.parquet", pa.table({"x": [2**40], "junk": [1]}))
    options = replace(SET_ASIDE, schema_mode=SchemaMode.ADD, max_files_per_task=most)
    found = given(dataset_uri, one_each(bad, good), options)
    assert (found.ingested, dict(found.refused)) == (("good",), {"bad": "bad.parquet: row 1: a bad value"})
    assert lance_ops.dataset(dataset_uri).schema == pa.schema({"x": pa.int32(), "more": pa.string()})
    assert data_files(dataset_uri) == named_files(dataset_uri)


def test_tasks_run_once_if_the_batch_that_is_set_aside_decided_nothing_about_the_schema(
    uri: str, folder: Path, bad_value: None
) -> None:
    files = parquet(folder, "a.parquet", pa.table({"x": [1], "more": [2]})), parquet(folder, "bad.parquet")
    runner = PicklingRunner()
    options = replace(SET_ASIDE, schema_mode=SchemaMode.ADD, max_files_per_task=1)
    found = ingest(uri, one_each(*files), options=options, runner=runner)
    assert (found.ingested, list(found.refused)) == (("a",), ["bad"])
    assert [count for verb, count in runner.jobs if verb == "ingest into"] == [2]


@pytest.mark.parametrize("is_new", [False, True], ids=["a table", "no table yet"])
def test_a_file_that_is_gone_from_its_store_sets_aside_its_own_batch(
    dataset_uri: str, tmp_path: Path, is_new: bool
) -> None:
    if not is_new:
        lance_ops.write_dataset(pa.table({"x": [0]}), dataset_uri)
    memory = fsspec.filesystem("memory")
    names = [f"memory://{tmp_path.name}/{name}.csv" for name in "ab"]
    memory.pipe({name.removeprefix("memory:/"): b"x\n1\n" for name in names})
    files = [found_file(name, {}) for name in names]
    memory.rm(names[1].removeprefix("memory:/"))
    found = given(dataset_uri, one_each(*files))
    assert found.ingested == ("a",)
    assert "b.csv: it is not there any more" in found.refused["b"]


def test_tasks_without_a_refused_batch_run_once(uri: str, folder: Path) -> None:
    runner = PicklingRunner()
    first, own, second, third = (parquet(folder, f"{number}.parquet") for number in range(4))
    split = IngestBatch("split", (own, junk(folder, "junk.parquet")))  # its files are in two of three tasks
    batches = [*one_each(first), split, *one_each(second, third)]
    found = ingest(uri, batches, options=replace(SET_ASIDE, max_files_per_task=2), runner=runner)
    assert list(found.refused) == ["split"]
    assert runner.jobs == [("ingest into", 3), ("ingest into", 1)]
    assert data_files(uri) == named_files(uri)


def test_another_error_leaves_the_table_as_it_was(uri: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = room._write_part

    def failing(*arguments: object) -> int:
        if "z.parquet" in str(arguments[1]):
            raise OSError("no space left")
        return write(*arguments)  # type: ignore[arg-type]  # as they come

    monkeypatch.setattr(room, "_write_part", failing)
    batches = one_each(parquet(folder, "a.parquet"), junk(folder, "junk.parquet"), parquet(folder, "z.parquet"))
    with pytest.raises(OSError, match="no space left"):
        given(uri, batches, replace(SET_ASIDE, max_files_per_task=1))
    assert stored(uri) == [0]
    assert data_files(uri) == named_files(uri)


def test_the_files_of_bad_batches_are_read_once_and_the_others_twice(
    uri: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    batches_of = RawReader.batches

    def noted(self: RawReader, file: RawFile, *given: Any) -> Iterator[pa.RecordBatch]:
        read.append(Path(file.uri).stem)
        return batches_of(self, file, *given)

    monkeypatch.setattr(RawReader, "batches", noted)
    bad = [junk(folder, f"bad-{number}.parquet") for number in range(20)]
    bad += [parquet(folder, f"wide-{number}.parquet", pa.table({"x": [2**40]})) for number in range(10)]
    narrow = f"{uri}-narrow"
    lance_ops.write_dataset(pa.table({"x": pa.array([0], pa.int32())}), narrow)
    assert len(given(narrow, one_each(*bad)).refused) == 30
    assert sorted(read) == sorted(Path(file.uri).stem for file in bad)
    read.clear()
    good = [parquet(folder, f"good-{number}.parquet") for number in range(3)]
    assert given(narrow, one_each(good[0], *bad, *good[1:])).ingested == ("good-0", "good-1", "good-2")
    assert Counter(read) == {Path(file.uri).stem: 2 if file in good else 1 for file in (*bad, *good)}
    assert data_files(narrow) == named_files(narrow)


def _no_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: io.FileIO("/dev/full", "r+"))


def _no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise BlockingIOError(errno.EAGAIN, "no process is left")

    FORK_CLIENT.disconnect()
    monkeypatch.setattr(subprocess, "Popen", fail)


def _no_open_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(raw_files, "open_local", fail)


def _no_open_file_for_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENFILE, "too many open files in the system")

    monkeypatch.setattr(pq, "ParquetFile", fail)


@pytest.mark.parametrize(
    ("break_it", "reason", "isolated"),
    [
        (_no_space, "No space left", True),
        (_no_process, "no process is left", True),
        (_no_open_file, "too many open files", True),
        (_no_open_file_for_arrow, "in the system", False),
    ],
)
def test_a_failure_of_the_machine_sets_no_batch_aside(
    uri: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    break_it: Callable[[pytest.MonkeyPatch], None],
    reason: str,
    isolated: bool,
) -> None:
    good = parquet(folder, "good.parquet")
    if break_it is _no_space:
        memory = fsspec.filesystem("memory")
        memory.pipe("/raw/good.parquet", Path(good.uri).read_bytes())
        good = replace(good, uri="memory://raw/good.parquet")
    options = replace(SET_ASIDE, reading=RawReading(isolated=isolated))
    with monkeypatch.context() as broken:
        break_it(broken)
        with pytest.raises(StoreError, match=f"good.parquet.*{reason}") as caught:
            given(uri, one_each(good), options)
    assert type(caught.value) is StoreError, "another attempt of a task may succeed"
    assert (stored(uri), data_files(uri)) == ([0], named_files(uri))
    assert given(uri, one_each(good), options).ingested == ("good",)

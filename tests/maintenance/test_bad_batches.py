"""Batches that cannot be ingested are set aside, and the others are committed."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from lance_ops.maintenance.ingest import (
    BadBatches,
    ExtraColumns,
    IngestBatch,
    IngestOptions,
    IngestResult,
    MissingColumns,
    RawFile,
    RawReading,
    TextReading,
    found_file,
    ingest,
    raw_files,
    survey_ingest,
)
from lance_ops.maintenance.ingest.decoding.decoding_process import DecodingProcess
from lance_ops.maintenance.ingest.raw_files import RawReader
from lance_ops.maintenance.ingest.raw_rows import renamed
from lance_ops.maintenance.ingest.running import ingest_tasks as room
from tests.forked_decoders import start_alone
from tests.pickling_runner import PicklingRunner

SET_ASIDE = IngestOptions(bad_batches=BadBatches.SET_ASIDE)
NUMBERS = pa.table({"x": [1, 2]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of raw files."""
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


@pytest.fixture
def uri(dataset_uri: str) -> str:
    """A table that is there already: the files decide nothing about its schema."""
    lance_ops.write_dataset(pa.table({"x": [0]}), dataset_uri)
    return dataset_uri


def raw(path: Path) -> RawFile:
    return RawFile(str(path), path.stat().st_size, path.name)


def parquet(folder: Path, name: str, table: pa.Table = NUMBERS) -> RawFile:
    pq.write_table(table, folder / name)
    return raw(folder / name)


def junk(folder: Path, name: str) -> RawFile:
    (folder / name).write_bytes(b"this is no Parquet")
    return raw(folder / name)


def one_each(*files: RawFile) -> list[IngestBatch]:
    return [IngestBatch(Path(file.uri).stem, (file,)) for file in files]


def stored(uri: str) -> list[int]:
    found: list[int] = lance_ops.dataset(uri).to_table()["x"].to_pylist()
    return sorted(found)


def data_files(uri: str) -> set[str]:
    return {path.name for path in (Path(uri) / "data").iterdir()}


def named_files(uri: str) -> set[str]:
    return {file.path for fragment in lance_ops.dataset(uri).snapshot.fragments for file in fragment.files}


def given(uri: str, batches: list[IngestBatch], options: IngestOptions = SET_ASIDE) -> IngestResult:
    return ingest(uri, batches, options=options, runner=PicklingRunner())


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

    monkeypatch.setattr(DecodingProcess, "_start", start_alone)
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


def test_a_new_table_takes_its_schema_from_the_files_that_can_be_read(dataset_uri: str, folder: Path) -> None:
    batches = one_each(junk(folder, "a.parquet"), parquet(folder, "b.parquet"), junk(folder, "c.parquet"))
    found = given(dataset_uri, batches)
    assert (found.version, found.ingested, sorted(found.refused)) == (1, ("b",), ["a", "c"])
    assert stored(dataset_uri) == [1, 2]
    alone = given(f"{dataset_uri}-other", one_each(junk(folder, "junk.parquet")))
    assert (alone.version, list(alone.refused)) == (None, ["junk"])
    assert not Path(f"{dataset_uri}-other").exists()


@pytest.mark.parametrize("at", [0, 1, 4])
def test_of_files_that_contradict_each_other_the_fewer_ones_are_set_aside(
    dataset_uri: str, folder: Path, at: int
) -> None:
    files = [parquet(folder, f"{number}.parquet", pa.table({"x": [number]})) for number in range(4)]
    files.insert(at, parquet(folder, "odd.parquet", pa.table({"x": [[1]]})))
    in_process = RawReading(isolated=False)
    found = given(dataset_uri, one_each(*files), replace(SET_ASIDE, reading=in_process))
    assert (found.ingested, list(found.refused)) == (("0", "1", "2", "3"), ["odd"])
    assert "odd.parquet: it disagrees with other files: column 'x'" in found.refused["odd"]
    with pytest.raises(SchemaMismatch, match="odd.parquet: it disagrees"):
        given(f"{dataset_uri}-other", one_each(*files), IngestOptions(reading=in_process))


@pytest.mark.parametrize("at", [0, 4])
def test_the_first_run_judges_columns_and_values_as_later_ones_do(dataset_uri: str, folder: Path, at: int) -> None:
    def csv(name: str, text: str) -> RawFile:
        (folder / name).write_text(text)
        return raw(folder / name)

    files = [csv(f"{number}.csv", f"x,y\n{number},1.5\n") for number in range(4)]
    odd = [csv("more.csv", "x,y,fare\n1,2.5,3\n"), csv("less.csv", "X\n7\n"), csv("text.csv", "x,y\nmany,1.5\n")]
    batches = one_each(*files[:at], *odd, *files[at:])
    options = replace(SET_ASIDE, reading=RawReading(isolated=False))
    found = given(dataset_uri, batches, options)
    assert (found.version, set(found.ingested)) == (1, {"0", "1", "2", "3", "less"})
    assert lance_ops.dataset(dataset_uri).schema == pa.schema({"x": pa.int64(), "y": pa.float64()})
    assert stored(dataset_uri) == [0, 1, 2, 3, 7]
    assert "more.csv: column 'fare'" in found.refused["more"]
    assert "text.csv: line 2: column 'x': 'many' is no int64" in found.refused["text"]
    later = given(dataset_uri, [batch for batch in batches if batch.key in found.refused], options)
    assert later.refused == found.refused

    for name, policy, refused in (
        ("added", {"schema_mode": SchemaMode.ADD}, {"text"}),
        ("declared", {"column_types": {"fare": pa.float64()}}, {"text"}),
        ("strict", {"missing_columns": MissingColumns.REFUSE, "extra_columns": ExtraColumns.IGNORE}, {"less", "text"}),
    ):
        result = given(f"{dataset_uri}-{name}", batches, replace(options, **policy))
        assert result.refused.keys() == refused
        assert ("fare" in lance_ops.dataset(f"{dataset_uri}-{name}").schema.names) == (name != "strict")


@pytest.mark.parametrize("wide_first", [False, True])
def test_a_wider_type_of_few_files_is_refused_on_the_first_run_as_later(
    dataset_uri: str, folder: Path, wide_first: bool
) -> None:
    def of_type(name: str, kind: pa.DataType, value: object, *, nullable: bool = True) -> IngestBatch:
        values = pa.table([pa.array([value], kind)], schema=pa.schema([pa.field("x", kind, nullable)]))
        return IngestBatch(name, (parquet(folder, f"{name}.parquet", values),))

    empty = [of_type(f"empty{number}", pa.null(), None) for number in range(5)]
    most = [of_type(f"{number}", pa.int32(), number, nullable=number % 2 == 0) for number in range(4)]
    wide = [of_type(f"wide{number}", pa.float64(), number + 0.5) for number in range(3)]
    batches = [*empty, *wide, *most] if wide_first else [*empty, *most, *wide]
    options = replace(SET_ASIDE, reading=RawReading(isolated=False))
    found = given(dataset_uri, batches, options)
    assert found.refused.keys() == {"wide0", "wide1", "wide2"}
    assert "wide0.parquet: column 'x'" in found.refused["wide0"]
    assert lance_ops.dataset(dataset_uri).schema == pa.schema({"x": pa.int32()})
    assert given(dataset_uri, wide, options).refused == found.refused

    adding = given(f"{dataset_uri}-other", batches, replace(options, schema_mode=SchemaMode.ADD))
    assert not adding.refused
    assert lance_ops.dataset(f"{dataset_uri}-other").schema == pa.schema({"x": pa.float64()})


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_text_files_with_whole_numbers_do_not_refuse_those_with_fractions(
    dataset_uri: str, folder: Path, suffix: str
) -> None:
    texts = {"csv": "x\n{}\n", "jsonl": '{{"x": {}}}\n'}
    batches = []
    for number in (1, 2.5, 3):
        (folder / f"{number}.{suffix}").write_text(texts[suffix].format(number))
        batches += one_each(raw(folder / f"{number}.{suffix}"))
    found = given(dataset_uri, batches, replace(SET_ASIDE, reading=RawReading(isolated=False)))
    assert (found.refused, stored(dataset_uri)) == ({}, [1.0, 2.5, 3.0])


def test_declared_types_lead_text_files_and_name_columns_without_a_header(dataset_uri: str, folder: Path) -> None:
    (folder / "a.csv").write_text("007;1\n008;2\n")
    reading = RawReading(text=TextReading(delimiter=";", header=False))
    types = {"code": pa.string(), "n": pa.int16()}
    given(dataset_uri, one_each(raw(folder / "a.csv")), replace(SET_ASIDE, reading=reading, column_types=types))
    assert lance_ops.dataset(dataset_uri).schema == pa.schema(list(types.items()))
    (folder / "b.csv").write_text("CODE,day\n009,20260102\n")
    added = raw(folder / "b.csv")
    options = replace(SET_ASIDE, schema_mode=SchemaMode.ADD, column_types={"day": pa.string(), "code": pa.binary()})
    given(dataset_uri, one_each(added), options)
    assert lance_ops.dataset(dataset_uri).schema == pa.schema([*types.items(), ("day", pa.string())])


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_fields_within_structs_follow_the_policies_of_columns(dataset_uri: str, folder: Path, suffix: str) -> None:
    def of(name: str, value: object) -> IngestBatch:
        rows = [{"x": 1, "s": [value]}]
        if suffix == "parquet":
            return IngestBatch(name, (parquet(folder, f"{name}.parquet", pa.Table.from_pylist(rows)),))
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return IngestBatch(name, (raw(folder / f"{name}.jsonl"),))

    more, less = of("more", {"a": 3, "b": 4, "more": 5}), of("less", {"a": 6})
    batches = [more, less, of("1", {"a": 1, "b": 2}), of("2", {"b": 2, "a": 1})]
    options = replace(SET_ASIDE, reading=RawReading(isolated=False))
    strict = replace(options, missing_columns=MissingColumns.REFUSE, extra_columns=ExtraColumns.IGNORE)
    for name, policy, refused in (("default", options, ["more"]), ("strict", strict, ["less"])):
        uri = f"{dataset_uri}-{name}"
        found = given(uri, batches, policy)
        assert list(found.refused) == refused
        expected = "field 's.more' (int64) is not in the table" if name == "default" else "has no field 's.b'"
        assert expected in found.refused[refused[0]]
        assert {field.name for field in lance_ops.dataset(uri).schema.field("s").type.value_type} == {"a", "b"}
        again = [batch for batch in batches if batch.key in refused]
        assert given(uri, again, policy).refused == found.refused, "a later run judges alike"
    given(dataset_uri, batches, replace(options, schema_mode=SchemaMode.ADD))
    assert lance_ops.dataset(dataset_uri).to_table()["s"].to_pylist()[:2] == [
        [{"a": 3, "b": 4, "more": 5}],
        [{"a": 6, "b": None, "more": None}],
    ]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_fields_within_structs_match_without_case_as_columns_do(dataset_uri: str, folder: Path, suffix: str) -> None:
    lance_ops.write_dataset(pa.Table.from_pylist([{"s": {"id": 1, "l": [{"Day": "a"}]}}]), dataset_uri)

    def of(name: str, *values: object) -> list[IngestBatch]:
        rows = [{"s": value} for value in values]
        if suffix == "parquet":
            return one_each(parquet(folder, f"{name}.parquet", pa.Table.from_pylist(rows)))
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return one_each(raw(folder / f"{name}.jsonl"))

    options = IngestOptions(reading=RawReading(isolated=False))
    for number, policy in enumerate(
        (
            options,
            replace(options, extra_columns=ExtraColumns.IGNORE, missing_columns=MissingColumns.REFUSE),
            replace(options, schema_mode=SchemaMode.ADD),
        )
    ):
        value = {"L": [{"DAY": str(number)}, None], "ID": number}
        (surveyed,) = survey_ingest(dataset_uri, of(f"{number}", value, None), options=policy).files
        assert not surveyed.refused and surveyed.columns is not None
        assert surveyed.columns.field("s").type.get_field_index("id") >= 0
        given(dataset_uri, of(f"{number}", value, None), policy)
        dataset = lance_ops.dataset(dataset_uri)
        assert dataset.to_table()["s"].to_pylist()[-2:] == [{"id": number, "l": [{"Day": str(number)}, None]}, None]
        assert {field.name for field in dataset.schema.field("s").type} == {"id", "l"}
    with pytest.raises(SchemaMismatch, match=r"twice.*: field 's.ID' is there twice: the table calls both 'id'"):
        given(dataset_uri, of("twice", {"id": 1, "ID": 2}), replace(options, extra_columns=ExtraColumns.IGNORE))
    with pytest.raises(SchemaMismatch, match=r"'s.ID' .* is not in the table .*or use schema mode 'add'"):
        given(dataset_uri, of("exact", {"ID": 2}), replace(options, case_sensitive=True))


def test_fields_within_structs_that_the_table_lacks_are_refused_or_ignored(dataset_uri: str, folder: Path) -> None:
    few, many = pa.struct({"a": pa.int64()}), pa.struct({"A": pa.int64(), "z": pa.int64()})

    def typed(struct: pa.DataType) -> pa.Schema:
        maps = {"m": pa.map_(pa.string(), struct), "k": pa.map_(struct, pa.string())}
        return pa.schema({"s": struct, "l": pa.list_(struct), **maps})

    lance_ops.write_dataset(typed(few).empty_table(), dataset_uri)
    value = {"A": 1, "z": 2}
    for name, row in (("s", value), ("l", [value]), ("m", [("k", value)]), ("k", [(value, "v")])):
        table = pa.table({name: pa.array([row], typed(many).field(name).type)})
        batches = one_each(parquet(folder, f"{name}.parquet", table))
        with pytest.raises(SchemaMismatch, match=rf"field '{name}(\.value|\.key)?\.z' .* is not in the table"):
            given(dataset_uri, batches, IngestOptions(reading=RawReading(isolated=False)))
        options = IngestOptions(reading=RawReading(isolated=False), extra_columns=ExtraColumns.IGNORE)
        (surveyed,) = survey_ingest(dataset_uri, batches, options=options).files
        assert not surveyed.refused
        given(dataset_uri, batches, options)
    kept = {"a": 1}
    assert lance_ops.dataset(dataset_uri).to_table().to_pylist() == [
        {"s": kept, "l": None, "m": None, "k": None},
        {"s": None, "l": [kept], "m": None, "k": None},
        {"s": None, "l": None, "m": [("k", kept)], "k": None},
        {"s": None, "l": None, "m": None, "k": [(kept, "v")]},
    ]


def test_a_survey_tells_which_file_adds_and_widens_which_field(dataset_uri: str, folder: Path) -> None:
    lance_ops.write_dataset(pa.table({"s": [{"a": 1}]}, pa.schema({"s": pa.struct({"a": pa.int32()})})), dataset_uri)
    values: dict[str, object] = {"usual": {"A": 1}, "adds": {"a": 1, "new": {"b": 1}}, "widens": {"A": 1.5}}
    types = {"usual": pa.struct({"A": pa.int32()}), "widens": pa.struct({"A": pa.float64()})}
    files = [
        parquet(folder, f"{name}.parquet", pa.table({"s": pa.array([values[name]], types.get(name))}))
        for name in values
    ]
    options = IngestOptions(schema_mode=SchemaMode.ADD, reading=RawReading(isolated=False))
    found = survey_ingest(dataset_uri, one_each(*files), options=options)
    effects = {each.key: [effect for effect in each.effects if not effect.startswith("casts")] for each in found.files}
    assert effects == {"usual": [], "adds": ["adds s.new"], "widens": ["widens s.a to double"]}


def test_fields_of_a_part_of_a_batch_are_renamed() -> None:
    rows = [{"X": 1, "L": [{"N": None}]}, None, {"X": 3, "L": [{"N": None}, None]}]
    kind = pa.struct([("X", pa.int64()), ("L", pa.large_list(pa.struct([("N", pa.null())])))])
    wanted = pa.struct([("x", pa.int64()), ("l", pa.large_list(pa.struct([("n", pa.null())])))])
    found = renamed(pa.array(rows, kind)[1:], wanted)
    found.validate(full=True)
    assert found.to_pylist() == [None, {"x": 3, "l": [{"n": None}, None]}]


def test_the_schema_of_each_file_is_read_once_however_many_are_set_aside(
    dataset_uri: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    schema = RawReader.schema

    def counted(reader: RawReader, file: RawFile, names: Sequence[str] | None = None) -> pa.Schema:
        asked.append(Path(file.uri).stem)
        return schema(reader, file, names)

    monkeypatch.setattr(RawReader, "schema", counted)
    good = [parquet(folder, f"good{number}.parquet") for number in range(3)]
    odd = [parquet(folder, f"odd{number}.parquet", pa.table({"x": [[1]]})) for number in range(2)]
    torn = [junk(folder, f"junk{number}.parquet") for number in range(3)]
    files = [torn[0], good[0], odd[0], torn[1], *good[1:], odd[1], torn[2]]
    found = given(dataset_uri, one_each(*files), replace(SET_ASIDE, reading=RawReading(isolated=False)))
    assert found.ingested == ("good0", "good1", "good2") and len(found.refused) == 5
    assert sorted(asked) == sorted(Path(file.uri).stem for file in files)

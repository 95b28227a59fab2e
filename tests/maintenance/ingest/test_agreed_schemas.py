"""The schema of a new table is that of most raw files; those that disagree with it are set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import SchemaMode
from lance_ops.errors import SchemaMismatch
from lance_ops.maintenance.ingest import (
    ExtraColumns,
    IngestBatch,
    IngestOptions,
    MissingColumns,
    RawFile,
    RawReading,
    TextReading,
)
from lance_ops.maintenance.ingest.raw_files import RawReader
from tests.maintenance.ingest.raw_batches import SET_ASIDE, given, junk, one_each, parquet, raw, stored


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


def test_a_file_that_is_set_aside_does_not_decide_the_order_of_columns(dataset_uri: str, folder: Path) -> None:
    others = [parquet(folder, f"{number}.parquet", pa.table({"x": [number], "y": [1.5]})) for number in range(2)]
    odd = parquet(folder, "odd.parquet", pa.table({"y": [1.5], "z": [1], "x": [1]}))
    found = given(dataset_uri, one_each(odd, *others), replace(SET_ASIDE, reading=RawReading(isolated=False)))
    assert list(found.refused) == ["odd"]
    assert lance_ops.dataset(dataset_uri).schema.names == ["x", "y"]


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

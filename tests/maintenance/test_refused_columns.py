"""Columns that no table may have, or that contradict other files, refuse their own batch; many are found together."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.core.schema import SchemaMode
from lance_ops.maintenance.ingest import BadBatches, IngestBatch, IngestOptions, RawFile, RawReading, ingest
from lance_ops.maintenance.ingest.planning import ingest_plan

OPTIONS = IngestOptions(bad_batches=BadBatches.SET_ASIDE, reading=RawReading(isolated=False))


def land(folder: Path, name: str, content: bytes) -> IngestBatch:
    path = folder / name
    path.write_bytes(content)
    return IngestBatch(path.stem, (RawFile(str(path), len(content), str(hash(content))),))


def parquet(**columns: Any) -> bytes:
    with io.BytesIO() as file:
        pq.write_table(pa.table(columns), file)
        return file.getvalue()


def feather(name: str, values: pa.Array) -> bytes:
    with io.BytesIO() as file:
        pyarrow.feather.write_feather(pa.table({"x": [2], name: values}), file, compression="uncompressed")
        return file.getvalue()


def union() -> pa.Array:
    return pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1]), pa.array(["a"])])


def twins() -> pa.Array:
    return pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])


BAD: dict[str, tuple[str, bytes, str]] = {
    "no name": ("bad.csv", b",x\n0,2\n", "column '': the name is empty.*distinct_names"),
    "a row id": ("bad.csv", b"_rowid,x\n0,2\n", "column '_rowid'"),
    "a union": ("bad.arrow", feather("u", union()), "'u'"),
    "a list view": ("bad.arrow", feather("v", pa.array([[1]], pa.list_view(pa.int64()))), "'v'"),
    "two fields of one name": ("bad.arrow", feather("s", twins()), "'s'.*'a'"),
}


@pytest.mark.parametrize("mode", [SchemaMode.ADD, SchemaMode.OVERWRITE, None], ids=["add", "overwrite", "new table"])
@pytest.mark.parametrize("name", BAD)
def test_a_column_that_no_table_may_have_refuses_its_own_batch(
    tmp_path: Path, dataset_uri: str, name: str, mode: SchemaMode | None
) -> None:
    file, content, reason = BAD[name]
    if mode is not None:
        lance_ops.write_dataset(pa.table({"x": [0]}), dataset_uri)
    batches = [land(tmp_path, "good.csv", b"x\n1\n"), land(tmp_path, file, content)]
    found = ingest(dataset_uri, batches, options=replace(OPTIONS, schema_mode=mode or SchemaMode.ADD))
    assert (found.ingested, list(found.refused)) == (("good",), ["bad"])
    assert pa.compute.match_substring_regex(found.refused["bad"], rf"{file}: .*{reason}").as_py()
    assert lance_ops.dataset(dataset_uri).schema == pa.schema({"x": pa.int64()})


def test_a_field_of_a_struct_that_no_table_may_have_refuses_its_own_batch(tmp_path: Path, dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"x": [0], "s": [{"a": 1}]}), dataset_uri)
    views = pa.array([[1]], pa.list_view(pa.int64()))
    struct = pa.StructArray.from_arrays([pa.array([1]), views], ["a", "v"])
    batches = [land(tmp_path, "bad.arrow", feather("s", struct)), land(tmp_path, "good.csv", b"x\n1\n")]
    found = ingest(dataset_uri, batches, options=replace(OPTIONS, schema_mode=SchemaMode.ADD))
    assert (found.ingested, list(found.refused)) == (("good",), ["bad"])
    assert "bad.arrow" in found.refused["bad"]


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    calls: list[str] = []
    function: Callable[..., Any] = getattr(ingest_plan, name)

    def noted(*arguments: Any, **options: Any) -> Any:
        calls.append(name)
        return function(*arguments, **options)

    monkeypatch.setattr(ingest_plan, name, noted)
    return calls


def test_however_many_batches_are_bad_they_are_found_in_as_many_plans(
    tmp_path: Path, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans, looks = counted(monkeypatch, "ingested_batches"), counted(monkeypatch, "unified_raw_schema")
    numbers = []
    for count in (2, 20):
        uri = f"{dataset_uri}-{count}"
        before = [land(tmp_path, f"changed{n}.csv", b"x\n1\n") for n in range(count)]
        ingest(uri, before, options=OPTIONS)
        plans.clear()
        looks.clear()
        changed = [land(tmp_path, f"changed{n}.csv", b"x\n2\n") for n in range(count)]
        lists = [land(tmp_path, f"list{n}.parquet", parquet(x=[1], y=[[n]])) for n in range(count)]
        twice = [land(tmp_path, f"twice{n}.parquet", parquet(X=[1], x=[n])) for n in range(count)]
        row_ids = [land(tmp_path, f"id{n}.csv", b"x,_rowid\n1,2\n") for n in range(count)]
        good = [land(tmp_path, f"good{n}.parquet", parquet(x=[1], y=[1.5])) for n in range(count + 1)]
        options = replace(OPTIONS, schema_mode=SchemaMode.ADD)
        found = ingest(uri, [*changed, *lists, *twice, *good, *row_ids], options=options)
        assert found.refused.keys() == {each.key for each in (*changed, *lists, *twice, *row_ids)}
        assert found.refused["changed1"].startswith("batch 'changed1' was ingested in version 1 with other content")
        assert "list1.parquet: it disagrees with other files: column 'y'" in found.refused["list1"]
        assert found.ingested == tuple(each.key for each in good)
        numbers.append((len(plans), len(looks)))
    assert numbers[0] == numbers[1]

"""Fields within structs of raw files are matched, added, refused and ignored as columns are."""

from __future__ import annotations

import json
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
    RawReading,
    survey_ingest,
)
from lance_ops.maintenance.ingest.raw_rows import renamed
from tests.maintenance.ingest.raw_batches import SET_ASIDE, given, one_each, parquet, raw


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

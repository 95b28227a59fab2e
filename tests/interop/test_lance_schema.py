"""A schema with its fields' ids answers as the reference's does."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceDataset, LanceOperation
from lance_ops.schema import LanceSchema, json_to_schema, schema_to_json

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

KEY = "lance-schema:unenforced-primary-key"
CLUSTERING = "lance-schema:unenforced-clustering-key"
SCHEMA = pa.schema(
    [
        pa.field("Id", pa.int64(), nullable=False, metadata={KEY: "true", "x": "y"}),
        pa.field("s", pa.struct([("x", pa.int32()), ("a.b", pa.string())])),
        pa.field("ID2", pa.list_(pa.int8())),
        pa.field("id2", pa.int8()),
    ],
    metadata={"m": "n"},
)
KEYS = pa.schema(
    [
        pa.field("a", pa.int32(), False, {f"{KEY}:position": "2"}),
        pa.field("b", pa.int32(), False, {f"{KEY}:position": "1"}),
        pa.field("c", pa.int32(), True, {f"{CLUSTERING}:position": "1"}),
        pa.field("d", pa.int32(), True),
    ]
)


def described(field: Any) -> Any:
    if field is None:
        return None
    return {
        "name": field.name(),
        "id": field.id(),
        "metadata": field.metadata,
        "arrow": str(field.to_arrow()),
        "primary": (field.is_unenforced_primary_key(), field.unenforced_primary_key_position()),
        "clustering": (field.is_unenforced_clustering_key(), field.unenforced_clustering_key_position()),
        "children": [described(child) for child in field.children()],
    }


@pytest.fixture
def both(tmp_path: Path) -> list[Any]:
    lance.write_dataset(SCHEMA.empty_table(), str(tmp_path / "table"))
    return [library.dataset(str(tmp_path / "table")) for library in (lance_ops, lance)]


def test_both_libraries_report_the_same_fields_of_a_table(both: list[Any]) -> None:
    ours, theirs = (dataset.lance_schema for dataset in both)
    assert list(map(described, ours.fields())) == list(map(described, theirs.fields()))
    assert ours.to_pyarrow().equals(theirs.to_pyarrow(), check_metadata=True)
    for path in ("Id", "id", "s.x", "s.`a.b`", "s.a.b", "ID2.item", "", "s..x", "`s", "S.X", "iD2", "none"):
        assert described(ours.field(path)) == described(theirs.field(path)), path
        assert described(ours.field_case_insensitive(path)) == described(theirs.field_case_insensitive(path)), path
    assert pickle.loads(pickle.dumps(ours)) == ours


@pytest.mark.parametrize("schema", [SCHEMA, KEYS], ids=["flag", "positions"])
def test_an_arrow_schema_gets_the_reference_s_field_ids(schema: pa.Schema) -> None:
    ours, theirs = LanceSchema.from_pyarrow(schema), lance.schema.LanceSchema.from_pyarrow(schema)
    assert list(map(described, ours.fields())) == list(map(described, theirs.fields()))
    for key in ("unenforced_primary_key", "unenforced_clustering_key"):
        mine, other = ([field.name() for field in getattr(each, key)()] for each in (ours, theirs))
        assert mine == other


def test_operations_accept_a_lance_schema(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(pa.table({"a": [1, 2], "b": [3, 4]}), tmp_path / "table")
    swapped = LanceSchema.from_pyarrow(pa.schema([("b", pa.int64()), ("a", pa.int64())]))
    made = LanceDataset.commit(dataset, LanceOperation.Project(swapped), read_version=1)
    assert lance.dataset(made.uri).to_table().to_pydict() == made.to_table().to_pydict() == {"b": [1, 2], "a": [3, 4]}
    fragment, schema = made.get_fragments()[0].merge_columns({"c": "a + b"})
    merged = LanceDataset.commit(made, LanceOperation.Merge([fragment], schema), read_version=2)
    assert merged.lance_schema == schema and lance.dataset(made.uri).to_table()["c"].to_pylist() == [4, 6]
    again = LanceDataset.commit(made, LanceOperation.Overwrite(merged.lance_schema, []))
    assert again.count_rows() == 0 and again.schema.names == ["b", "a", "c"]


ALL_KINDS = pa.schema(
    [
        pa.field("a", pa.int64(), False, {"k": "v"}),
        ("l", pa.list_(pa.struct([("x", pa.float32()), pa.field("y", pa.float64(), False)]))),
        ("f", pa.list_(pa.float16(), 4)),
        ("ts", pa.timestamp("us", "UTC")),
        ("dec", pa.decimal128(10, 2)),
        ("b", pa.large_binary()),
        ("fx", pa.binary(3)),
        ("dt", pa.date32()),
        ("n", pa.null()),
        ("u", pa.uint8()),
        ("ls", pa.large_string()),
        ("ll", pa.large_list(pa.bool_())),
        ("t", pa.time64("ns")),
        ("du", pa.duration("ms")),
        ("d", pa.dictionary(pa.int8(), pa.string())),
    ],
    metadata={"m": "n"},
)


@pytest.mark.parametrize("schema", [ALL_KINDS, SCHEMA, pa.schema([])], ids=["kinds", "nested", "empty"])
def test_a_schema_converts_to_and_from_the_reference_s_json(schema: pa.Schema) -> None:
    told = schema_to_json(schema)
    assert told == lance.schema_to_json(schema)
    plain = pa.schema([field for field in schema if not pa.types.is_dictionary(field.type)], schema.metadata)
    assert json_to_schema(schema_to_json(plain)).equals(plain, check_metadata=True)
    assert json_to_schema(schema_to_json(plain)).equals(
        lance.json_to_schema(schema_to_json(plain)), check_metadata=True
    )


def test_a_type_without_a_json_name_is_refused() -> None:
    for library in (lance_ops, lance):
        with pytest.raises((ValueError, NotImplementedError)):
            library.schema_to_json(pa.schema([("m", pa.map_(pa.string(), pa.int8()))]))
        wrong: tuple[dict[str, Any], ...] = (
            {},
            {"fields": [{}]},
            {"fields": [{"name": "a", "nullable": True, "type": {"type": "nothing"}}]},
        )
        for said in wrong:
            with pytest.raises((ValueError, NotImplementedError)):
                library.json_to_schema(said)

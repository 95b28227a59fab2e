"""What files of one table have in common is read once."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Dictionary, Field, Schema
from lance_ops.encodings import Encoding, encoding_from_pb
from lance_ops.file.v2_1.layouts import mini_block_description
from lance_ops.file.v2_1.layouts.mini_block_description import MiniBlockDescription
from lance_ops.pb import encodings_v2_1_pb2 as pb
from lance_ops.table import MANIFEST_CACHE
from lance_ops.wire import schema_from_pb, schema_to_pb

FILES = 9


@pytest.fixture
def uri(tmp_path: Path) -> str:
    rng = np.random.default_rng(4)
    rows = FILES * 200
    table = pa.table({"n": rng.normal(size=rows), "s": [f"text {number}" for number in rng.integers(0, 1 << 40, rows)]})
    return lance_ops.write_dataset(table, tmp_path / "table", max_rows_per_file=200).uri


def test_pages_with_equal_descriptions_share_one(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mini_block_description._shared.cache_clear()
    read: list[Encoding] = []

    def counted(described: pb.CompressiveEncoding) -> Encoding:
        read.append(encoding_from_pb(described))
        return read[-1]

    monkeypatch.setattr(mini_block_description, "encoding_from_pb", counted)
    dataset = lance_ops.dataset(uri)
    assert len(dataset.snapshot.fragments) == FILES
    assert dataset.to_table().num_rows == FILES * 200
    descriptions = {
        layout
        for fragment in dataset.snapshot.fragments
        for column in dataset.snapshot.open_data_file(fragment.files[0]).describe()
        for layout in column
    }
    assert {layout[0] for layout in descriptions} == {"mini_block"}
    assert len(read) < FILES, "not one description for each file"


def test_long_descriptions_are_not_kept(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mini_block_description, "_MAX_SHARED_BYTES", 0)
    mini_block_description._shared.cache_clear()
    made: list[MiniBlockDescription] = []
    describe = mini_block_description._describe
    monkeypatch.setattr(
        mini_block_description,
        "_describe",
        lambda *key: made.append(describe(*key)) or made[-1],  # type: ignore[func-returns-value]
    )
    # A read with a limit opens files one by one; a whole scan asks once for each description in a group of files.
    assert lance_ops.dataset(uri).to_table(limit=FILES * 200).num_rows == FILES * 200
    assert len(made) >= 2 * FILES
    assert mini_block_description._shared.cache_info().currsize == 0


def test_equal_fields_of_decoded_schemas_are_one_object() -> None:
    rows = pa.table({"n": [1], "s": [{"a": 1, "b": "x"}], "d": pa.array(["x"]).dictionary_encode()})
    stated = Schema.from_arrow(rows.schema)
    stated = Schema((*stated.fields[:2], replace(stated.fields[2], dictionary=Dictionary(64, 10))))
    first, second = (schema_from_pb(schema_to_pb(stated), {"number": number}, "") for number in (b"1", b"2"))
    assert first.fields == second.fields
    assert [one is other for one, other in zip(first.fields, second.fields, strict=True)] == [True, True, False]
    projected = first.project(["s", "n"])
    assert projected.fields[0] is first.fields[1]
    assert projected.fields[1] is first.fields[0]
    assert first.project(["s.a"]).fields[0].children == first.fields[1].children[:1]


def test_fields_that_differ_in_id_and_name_share_their_type() -> None:
    kinds = [
        ("int32", True, False),
        ("int32", False, False),
        ("fixed_size_list:float:8", True, False),
        ("x", True, True),
    ]
    columns = [
        Field(7 * number, -1, f"c{number}", *kinds[number % len(kinds)][:2], unenforced_primary_key=kind[2])
        for number, kind in enumerate(kinds * 3)
    ]
    columns[5] = replace(columns[5], metadata={"unit": "m"})
    columns[6] = replace(columns[6], unknown=b"\xf8\x3f\x01")
    found = schema_from_pb(schema_to_pb(Schema(tuple(columns))), {}, "").fields
    assert found == tuple(columns)
    assert pickle.loads(pickle.dumps(found)) == tuple(columns)
    assert [hash(field) for field in found] == [hash(field) for field in columns]
    assert found[8].arrow_type is found[0].arrow_type
    assert found[10].storage_field == columns[10].storage_field
    assert found[10].storage_field.name == "c10"
    assert found[5].storage_field.metadata == {b"unit": b"m"}
    for unknown in (found[3], found[7]):
        with pytest.raises(UnsupportedFeature, match=f"'{unknown.name}'"):
            _ = unknown.arrow_type


def test_a_file_has_the_very_schema_of_its_table(uri: str) -> None:
    MANIFEST_CACHE.reset()  # the writer's own manifest has the schema that it was given
    snapshot = lance_ops.dataset(uri).snapshot
    assert snapshot.open_data_file(snapshot.fragments[0].files[0]).schema is snapshot.schema

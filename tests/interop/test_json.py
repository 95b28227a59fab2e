"""JSON columns: the reference's bytes and text, and ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.errors import CorruptFile, InvalidInput, SchemaMismatch
from lance_ops.file import LanceFileReader

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=15,
)


def stored_bytes(uri: str) -> list[bytes | None]:
    (path,) = Path(uri, "data").glob("*.lance")
    column: pa.ChunkedArray = LanceFileReader(str(path)).read_all().to_table().column("doc")
    assert column.type == pa.large_binary()
    documents: list[bytes | None] = column.to_pylist()
    return documents


@given(documents=st.lists(st.none() | DOCUMENTS.map(json.dumps), min_size=1, max_size=20))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_any_document_encodes_to_the_references_bytes_and_text(
    documents: list[str | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = pa.table({"doc": pa.array(documents, pa.json_())})
    theirs, ours = (str(tmp_path_factory.mktemp("json") / name) for name in ("theirs", "ours"))
    lance.write_dataset(table, theirs)
    lance_ops.write_dataset(table, ours)
    assert stored_bytes(ours) == stored_bytes(theirs)
    read = [module.dataset(uri).to_table() for module in (lance, lance_ops) for uri in (theirs, ours)]
    assert all(found.equals(read[0]) for found in read)
    assert read[0].schema == table.schema


def nested(version: str) -> pa.Table:
    docs = pa.array(['{"a":1,"z":[1,{}]}', "2", '"x"', "null"], pa.json_())
    columns: dict[str, Any] = {"doc": docs, "id": [1, 2, 3, 4]}
    if version == "0.1":
        return pa.table(columns)
    docs = pa.array(['{"a":1}', "2", None, '"x"'], pa.json_())
    columns["doc"] = docs
    columns["l"] = pa.ListArray.from_arrays(pa.array([0, 2, None, 3, 4], pa.int32()), docs)
    columns["ll"] = pa.LargeListArray.from_arrays(pa.array([0, 2, 2, 3, 4], pa.int64()), docs)
    if version != "2.0":
        fields = [pa.field("j", pa.json_()), pa.field("x", pa.int64())]
        mask = pa.array([False, False, False, True])
        columns["s"] = pa.StructArray.from_arrays([docs, pa.array(range(4))], fields=fields, mask=mask)
    if version == "2.2":
        columns["m"] = pa.MapArray.from_arrays(pa.array([0, 2, 2, 3, 4], pa.int32()), pa.array(list("abcd")), docs)
    return pa.table(columns)


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("first", [lance, lance_ops], ids=["theirs", "ours"])
def test_json_at_any_nesting_is_read_and_appended_by_both(first: Any, version: str, dataset_uri: str) -> None:
    table = nested(version)
    second = lance_ops if first is lance else lance
    first.write_dataset(table, dataset_uri, data_storage_version=version)
    second.write_dataset(table, dataset_uri, mode="append")
    ours, theirs = lance_ops.dataset(dataset_uri), lance.dataset(dataset_uri)
    assert ours.schema.equals(theirs.schema)
    assert ours.to_table().equals(theirs.to_table())
    assert ours.to_table().to_pylist() == table.to_pylist() * 2
    paths = [name for name in ("s.j", "l", "id") if name.partition(".")[0] in table.column_names]
    assert ours.to_table(columns=paths).equals(theirs.to_table(columns=paths))
    assert ours.take([6, 0, 6]).to_pylist() == theirs.take([6, 0, 6]).to_pylist()
    for predicate in ("doc IS NULL", "id > 2"):
        assert ours.to_table(filter=predicate).equals(theirs.to_table(filter=predicate))
    if version != "0.1":
        ours.optimize.compact_files()
        assert len(ours.get_fragments()) == 1
        assert lance.dataset(dataset_uri).to_table().to_pylist() == table.to_pylist() * 2


def test_text_is_converted_to_json_and_bytes_are_refused(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(pa.table({"doc": pa.array(["[1]"], pa.json_())}), dataset_uri)
    lance_ops.write_dataset(pa.table({"doc": ['{"b": 1, "a": 2}']}), dataset_uri, mode="append")
    made.checkout_latest()
    assert made.to_table().column("doc").to_pylist() == ["[1]", '{"a":2,"b":1}']
    with pytest.raises(SchemaMismatch, match="'doc' is JSON"):
        lance_ops.write_dataset(pa.table({"doc": [b"[1]"]}), dataset_uri, mode="append")
    with pytest.raises(InvalidInput, match="column 'doc': not a JSON text"):
        lance_ops.write_dataset(pa.table({"doc": ["[1"]}), dataset_uri, mode="append")
    assert lance_ops.dataset(dataset_uri).version == 2


def test_reading_invalid_json_bytes_raises_corrupt_file(dataset_uri: str) -> None:
    field = pa.field("doc", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"})
    table = pa.table([pa.array([b"\x20\x00"], pa.large_binary())], schema=pa.schema([field]))
    lance.write_dataset(table, dataset_uri)
    with pytest.raises(CorruptFile, match="JSON column 'doc'"):
        lance_ops.dataset(dataset_uri).to_table()

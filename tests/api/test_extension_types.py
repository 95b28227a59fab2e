"""Columns of bfloat16 and of images keep their types in a process that has registered none with Arrow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TABLE = """
import sys
import numpy as np, pyarrow as pa, lance_ops
from lance_ops import arrow

halves = lambda count: arrow.bfloat16_array([float(each) for each in range(count)])
vectors = pa.FixedSizeListArray.from_arrays(halves(12), 3)
uris = arrow.ImageURIArray.from_uris(["a", None, "c", "d"])
pixels = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
table = pa.table({
    "number": [0, 1, 2, 3],
    "half": arrow.bfloat16_array([1.5, None, -2.0, 3.25]),
    "vector": vectors,
    "tensor": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(vectors.type.value_type, [3]), vectors),
    "list": pa.ListArray.from_arrays(pa.array([0, 2, 2, 5, 6], pa.int32()), halves(6)),
    "struct": pa.StructArray.from_arrays([halves(4), uris], ["half", "uri"]),
    "uri": uris,
    "encoded": arrow.ImageArray.from_array(pa.array([b"1", b"2", None, b"4"])),
    "pixels": arrow.ImageArray.from_array(pa.FixedShapeTensorArray.from_numpy_ndarray(pixels)),
})
root = sys.argv[1]
"""


def run(code: str, tmp_path: Path) -> None:
    """Run code in a process that does not import the reference."""
    result = subprocess.run(
        [sys.executable, "-c", TABLE + code, str(tmp_path)], check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_types_are_written_and_read_at_any_depth(tmp_path: Path) -> None:
    code = """
for version in ("2.0", "2.1", "2.2"):
    ds = lance_ops.write_dataset(table, f"{root}/{version}", data_storage_version=version)
    fragment = ds.get_fragments()[0]
    for schema in (ds.schema, fragment.schema, ds.scanner().projected_schema, ds.lance_schema.to_pyarrow()):
        assert schema == table.schema, schema
    for read in (ds.to_table(), ds.scanner().to_reader().read_all(), fragment.to_table(), ds.take([0, 1, 2, 3])):
        assert read == table
    assert [field.to_arrow() for field in ds.lance_schema.fields()] == list(table.schema)
    parts = ds.to_table(columns=["struct.uri", "vector"], filter="number >= 2")
    assert parts == pa.table({"struct.uri": uris[2:], "vector": vectors[2:]})
    assert isinstance(ds.to_table()["pixels"].chunk(0), arrow.FixedShapeImageTensorArray)
"""
    run(code, tmp_path)


def test_tables_that_were_read_are_written_again(tmp_path: Path) -> None:
    code = """
ds = lance_ops.write_dataset(table, root)
ds = lance_ops.write_dataset(ds.to_table(), root, mode="append")
rows = [1, 6, 0, 5]
assert ds.take(rows) == pa.concat_tables([table, table]).take(rows)
for number, data in enumerate((ds, ds.scanner(), ds.to_table(), ds.get_fragments()[0].scanner())):
    assert lance_ops.write_dataset(data, f"{root}/copy{number}").schema == table.schema
ds.merge_insert("number").when_matched_update_all().when_not_matched_insert_all().execute(ds.to_table(limit=2))
ds.delete("number = 0")
ds.optimize.compact_files()
assert ds.schema == table.schema
assert sorted(ds.to_table().to_pylist(), key=lambda row: row["number"]) == [
    row for row in table.to_pylist()[1:] for _ in range(2)
]
"""
    run(code, tmp_path)


def test_functions_of_new_columns_get_the_types_that_scans_show(tmp_path: Path) -> None:
    code = """
documents = pa.array(['{"a": 1}', None, "2", "3"], pa.json_())
given = table.append_column("document", documents)
ds = lance_ops.write_dataset(given, root)
seen = []

def count(batch):
    seen.append(batch.schema)
    return pa.record_batch({f"count{len(ds.schema.names)}": list(range(len(batch)))})

ds.add_columns(count)
ds.add_columns(count, read_columns=given.schema.names)
ds.get_fragments()[0].merge_columns(count, given.schema.names)
assert len(seen) == 6 and all(schema == given.schema for schema in seen), seen
ds.add_columns(count, read_columns=["uri", "_rowid"])
assert seen[-1].names == ["uri", "_rowid"] and seen[-1].field("uri") == given.schema.field("uri")
"""
    run(code, tmp_path)


def test_a_column_that_claims_a_type_of_other_values_is_read_as_it_is_stored(tmp_path: Path) -> None:
    code = """
claims = {
    "lance.arrow.image_uri": [1, 2], "lance.bfloat16": [b"123", b"456"], "lance.arrow.encoded_image": ["a", "b"],
    "lance.arrow.fixed_shape_image_tensor": pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
}
texts = ["", "{", "[]", "{}", '{"shape": [3]}', '{"shape": ["x"]}', '{"shape": [99999999999]}', '{"shape": []}']
for number, text in enumerate(texts):
    fields = []
    for at, (name, values) in enumerate(claims.items()):
        claim = {"ARROW:extension:name": name, "ARROW:extension:metadata": text}
        fields.append(pa.field(f"c{at}", pa.array(values).type, metadata=claim))
    given = pa.table(list(claims.values()), schema=pa.schema(fields))
    ds = lance_ops.write_dataset(given, f"{root}/{number}")
    assert ds.schema == given.schema and ds.to_table() == given, (text, ds.schema)
"""
    run(code, tmp_path)


@pytest.mark.interop
def test_the_reference_can_be_imported_later_and_gives_its_types_then(tmp_path: Path) -> None:
    pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    code = """
ds = lance_ops.write_dataset(table, root)
assert type(ds.schema.field("half").type) is arrow.BFloat16Type
from importlib import import_module
reference = import_module("lance.arrow")
for opened in (ds, lance_ops.dataset(root)):
    read = opened.to_table()
    assert type(read.schema.field("half").type) is reference.BFloat16Type
    assert isinstance(read["uri"].chunk(0), reference.ImageURIArray)
    assert opened.schema == read.schema == import_module("lance").dataset(root).schema
"""
    run(code, tmp_path)

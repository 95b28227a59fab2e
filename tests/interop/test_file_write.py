"""Files written here, read by the reference implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, FileWriter
from lance_ops.pb import file_pb2
from lance_ops.store.local.local_store import LocalStore
from lance_ops.wire import schema_to_pb, shared_schema
from tests.file.exactness import exact
from tests.file.strategies import columns
from tests.interop.file_cases import CASES, LEGACY_CASES, Case

pytestmark = pytest.mark.interop

VERSIONS = ("2.0", "2.1", "2.2")


def write_ours(path: Path, table: pa.Table, version: str, page_bytes: int | None = None) -> None:
    store, schema = LocalStore(str(path.parent)), Schema.from_arrow(table.schema)
    with FileWriter(store, path.name, schema, FileVersion(version), page_bytes=page_bytes) as writer:
        writer.write_batch(table)


def check_reference(path: Path, rows: list[dict[str, Any]], offsets: list[int], table: pa.Table, version: str) -> None:
    from lance.file import LanceFileReader, LanceFileWriter

    reader = LanceFileReader(str(path))
    try:
        reader.read_all().to_table()
    except pa.ArrowInvalid as error:
        # It miscounts null structs in lists of lists, in its own files too; no other failure is accepted.
        if "Incorrect number of nulls for StructArray" not in str(error):
            raise
        with LanceFileWriter(f"{path}.own", table.schema, version=version) as writer:
            writer.write_batch(table)
        with pytest.raises(pa.ArrowInvalid, match="Incorrect number of nulls for StructArray"):
            LanceFileReader(f"{path}.own").read_all().to_table()
        return
    found = reader.read_all(batch_size=1 << 30).to_table()
    found.validate(full=True)
    rows = exact(rows)
    assert exact(found.to_pylist()) == rows
    start, stop = len(rows) // 3, len(rows) // 2
    if stop > start:
        assert exact(reader.read_range(start, stop - start).to_table().to_pylist()) == rows[start:stop]
    if offsets:
        assert exact(reader.take_rows(offsets).to_table().to_pylist()) == [rows[offset] for offset in offsets]


@pytest.mark.parametrize(
    ("case", "version"),
    [
        pytest.param(case, version, id=f"{case.name} {version}")
        for case in CASES
        for version in VERSIONS
        if version in case.encodings
    ],
)
def test_the_reference_reads_our_pages_of_every_kind(case: Case, version: str, tmp_path: Path) -> None:
    table = case.table()
    write_ours(tmp_path / "file.lance", table, version)
    rows = table.to_pylist()
    assert FileReader(LocalStore(str(tmp_path)), "file.lance").read().to_pylist() == rows
    offsets = np.unique(np.random.default_rng(len(rows)).integers(0, len(rows), 15)).tolist()
    check_reference(tmp_path / "file.lance", rows, offsets, table, version)


@pytest.mark.parametrize("version", VERSIONS)
@given(page_bytes=st.sampled_from([None, 2000]), data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_reference_reads_any_column_of_ours_whole_and_in_parts(
    version: str, page_bytes: int | None, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    column = data.draw(columns(version, fixed_size_lists_of_structs=False))
    table = pa.table({"c": column})
    path = tmp_path_factory.mktemp("files") / "file.lance"
    write_ours(path, table, version, page_bytes)
    rows = table.to_pylist()
    if rows:
        offsets = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=10)))
        check_reference(path, rows, offsets, table, version)


PACKED = {"lance-encoding:packed": "true"}
NO_NULLS_IN_ROWS = {
    "a number": pa.array([{"x": 1, "y": 2}, {"x": 1, "y": None}]),
    "a string": pa.array([{"x": 1, "y": "a"}, {"x": None, "y": "b"}]),
    "a list": pa.array([{"y": [2, 3]}, {"y": None}], pa.struct([("y", pa.list_(pa.int8(), 2))])),
    "nothing but nulls": pa.array([{"x": 1, "y": None}], pa.struct([("x", pa.int8()), ("y", pa.null())])),
    "dictionaries": pa.array([{"x": "a"}], pa.struct([("x", pa.dictionary(pa.int8(), pa.string()))])),
}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", NO_NULLS_IN_ROWS)
def test_nulls_that_packed_structs_cannot_hold_are_refused_by_both(name: str, version: str, tmp_path: Path) -> None:
    from lance.file import LanceFileWriter

    array = NO_NULLS_IN_ROWS[name]
    for column, metadata in ((array, PACKED), (pa.ListArray.from_arrays([0, len(array)], array), None)):
        field = pa.field("c", column.type, metadata=metadata)
        if metadata is None:
            field = pa.field("c", pa.list_(pa.field("item", array.type, metadata=PACKED)))
        table = pa.table([column.cast(field.type)], pa.schema([field]))
        with pytest.raises(UnsupportedFeature, match="column '(c|item)': .* packed struct"):
            write_ours(tmp_path / "ours.lance", table, version)
    writer = LanceFileWriter(str(tmp_path / "theirs.lance"), table.schema, version=version)
    with pytest.raises(BaseException):  # noqa: B017, PT011, PT012 - it panics on some, at once or in the end
        writer.write_batch(table)
        writer.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_schema_that_states_types_and_encodings_as_old_manifests_do_is_read(version: str, tmp_path: Path) -> None:
    table = pa.table({"n": range(100), "s": [f"text {number}" for number in range(100)]})
    message = file_pb2.Schema(fields=schema_to_pb(Schema.from_arrow(table.schema)))
    for field, encoding in zip(message.fields, (file_pb2.RLE, file_pb2.PLAIN), strict=True):
        field.type, field.encoding = file_pb2.Field.LEAF, encoding
    encoded = message.SerializeToString(deterministic=True)
    schema = shared_schema(encoded, "m")
    store = LocalStore(str(tmp_path))
    with FileWriter(store, "f.lance", schema, FileVersion(version)) as writer:
        writer.write_batch(table)
    assert encoded in store.get("f.lance").to_pybytes()
    check_reference(tmp_path / "f.lance", table.to_pylist(), [0, 5, 99], table, version)


def test_lists_in_packed_structs_may_have_null_items(tmp_path: Path) -> None:
    kind = pa.struct([("x", pa.int8()), ("y", pa.list_(pa.int8(), 2))])
    array = pa.array([{"x": i % 100, "y": [i % 7, None]} for i in range(300)], kind)
    table = pa.table([array], pa.schema([pa.field("c", kind, metadata=PACKED)]))
    write_ours(tmp_path / "f.lance", table, "2.2")
    assert FileReader(LocalStore(str(tmp_path)), "f.lance").read().equals(table)
    check_reference(tmp_path / "f.lance", table.to_pylist(), [0, 5, 200], table, "2.2")


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_fields_of_a_null_packed_struct_may_be_null(version: str, tmp_path: Path) -> None:
    numbers = [i if i % 3 else None for i in range(100)]
    children = [pa.array(numbers, pa.int32()), pa.array(numbers, pa.int8())]
    array = pa.StructArray.from_arrays(children, ["x", "y"], mask=children[0].is_null())
    table = pa.table([array], pa.schema([pa.field("c", array.type, metadata=PACKED)]))
    write_ours(tmp_path / "f.lance", table.slice(7), version)
    check_reference(tmp_path / "f.lance", table.slice(7).to_pylist(), [0, 5, 80], table.slice(7), version)


def test_the_reference_reads_global_buffers_and_metadata(tmp_path: Path) -> None:
    from lance.file import LanceFileReader

    schema = Schema.from_arrow(pa.schema([("x", pa.int8())], metadata={"made": "here"}))
    with FileWriter(LocalStore(str(tmp_path)), "file.lance", schema) as writer:
        writer.write_batch(pa.table({"x": pa.array([1], pa.int8())}))
        writer.add_global_buffer(b"more")
    reader = LanceFileReader(str(tmp_path / "file.lance"))
    assert bytes(reader.read_global_buffer(1)) == b"more"
    assert reader.metadata().schema.metadata == {b"made": b"here"}


@pytest.mark.parametrize("case", LEGACY_CASES, ids=lambda case: case.name)
def test_the_reference_reads_our_legacy_pages_of_every_kind(case: Case, tmp_path: Path) -> None:
    import lance
    from lance.fragment import DataFile, FragmentMetadata

    table = pa.table({"c": case.table().column("c").drop_null()})
    rows = [row for row in table.to_pylist() if row["c"] not in ("", b"")]
    table = pa.Table.from_pylist(rows, table.schema)
    (tmp_path / "data").mkdir()
    schema = Schema.from_arrow(table.schema)
    with FileWriter(LocalStore(str(tmp_path / "data")), "file.lance", schema, FileVersion.V0_1) as writer:
        for batch in table.to_batches(max_chunksize=700):
            writer.write_batch(batch)
    written = writer.finish()
    assert FileReader(LocalStore(str(tmp_path / "data")), "file.lance").read().to_pylist() == rows
    if any(node.is_dictionary for node in schema.walk()):  # the manifest has their values too
        dataset = lance_ops.write_dataset(table, str(tmp_path / "table"), data_storage_version="0.1")
        assert lance.dataset(dataset.uri).to_table().to_pylist() == rows
        return
    file = DataFile("file.lance", list(written.fields), [], written.major, written.minor, written.size_bytes)
    fragment = FragmentMetadata(id=0, files=[file], physical_rows=len(rows))
    lance.LanceDataset.commit(str(tmp_path), lance.LanceOperation.Overwrite(table.schema, [fragment]))
    dataset = lance.dataset(str(tmp_path))
    assert dataset.data_storage_version == "0.1"
    assert dataset.to_table().to_pylist() == rows


@pytest.mark.parametrize(
    ("column", "predicate"),
    [
        (pa.array(range(5000)), "c >= 4200 AND c < 4300"),
        (pa.array([float(i) - 0.5 for i in range(5000)]), "c > 4000.0"),
        (pa.array([f"{i:08}" + "é" * 90 for i in range(5000)]), "c > '00003999' AND c < '00004100'"),
    ],
)
def test_the_reference_prunes_by_our_statistics_without_losing_rows(
    column: pa.Array, predicate: str, tmp_path: Path
) -> None:
    import lance
    from lance.fragment import DataFile, FragmentMetadata

    table = pa.table({"c": column})
    (tmp_path / "data").mkdir()
    with FileWriter(
        LocalStore(str(tmp_path / "data")), "file.lance", Schema.from_arrow(table.schema), FileVersion.V0_1
    ) as writer:
        writer.write_batch(table)
    written = writer.finish()
    file = DataFile("file.lance", [0], [], written.major, written.minor, written.size_bytes)
    fragment = FragmentMetadata(id=0, files=[file], physical_rows=5000)
    lance.LanceDataset.commit(str(tmp_path), lance.LanceOperation.Overwrite(table.schema, [fragment]))
    found = lance.dataset(str(tmp_path)).to_table(filter=predicate)
    wanted = lance.write_dataset(table, str(tmp_path / "own")).to_table(filter=predicate)
    assert 0 < found.num_rows < 5000
    assert found.to_pylist() == wanted.to_pylist()

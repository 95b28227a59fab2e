"""Dictionary columns in tables of file version 0.1, whose values stand in every manifest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import lance_ops
from lance_ops.core.errors import CorruptFile, InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.core.schema import Dictionary
from lance_ops.core.schema_edit import with_dictionaries
from lance_ops.maintenance.ingest import IngestBatch, IngestOptions, RawFile, ingest
from lance_ops.table import decode_manifest, encode_manifest

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

WORDS, SIZES = pa.array(["ax", "b", "ccc"]), pa.array(["q", "rr"], pa.large_string())
ENTRIES = st.sampled_from([pa.string(), pa.large_string(), pa.binary(), pa.int8(), pa.int64(), pa.uint32()])
KEYS = st.sampled_from([pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64()])


def keyed(keys: Sequence[int | None], values: pa.Array, kind: pa.DataType | None = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(keys, kind or pa.int8()), values)


def rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    items = keyed([i % 2 for i in range(2 * len(ids))], pa.array([7, -8], pa.int32()), pa.uint32())
    inner = keyed([i % 2 for i in ids], SIZES, pa.uint8())
    return pa.table(
        {
            "id": ids,
            "word": keyed([i % 3 for i in ids], WORDS, pa.int32()),
            "in": pa.StructArray.from_arrays([inner, pa.array(ids)], ["size", "y"]),
            "list": pa.ListArray.from_arrays(list(range(0, 2 * len(ids) + 1, 2)), items),
            "bytes": keyed([i % 2 for i in ids], pa.array([b"\xff", b"z"]), pa.int64()),
        }
    )


def compact(module: Any, uri: str) -> None:
    module.dataset(uri).optimize.compact_files()


def assert_same(uri: str) -> None:
    ours, theirs = lance_ops.dataset(uri), lance.dataset(uri)
    found = ours.to_table()
    found.validate(full=True)
    assert found.schema == theirs.to_table().schema
    assert found.to_pylist() == theirs.to_table().to_pylist()
    offsets = [1, 0, len(found) - 1]
    assert ours.take(offsets).to_pylist() == theirs.take(offsets).to_pylist()
    for columns, predicate in ((["word"], "word = 'b'"), (["in.size", "list"], "id % 2 = 0")):
        some = ours.to_table(columns=columns, filter=predicate)
        assert some.to_pylist() == theirs.to_table(columns=columns, filter=predicate).to_pylist()
    ours.validate()
    theirs.validate()


@pytest.mark.parametrize(("one", "other"), [(lance_ops, lance), (lance, lance_ops)], ids=["ours", "theirs"])
def test_both_write_in_turns_and_read_the_same(one: Any, other: Any, dataset_uri: str) -> None:
    turns: list[Callable[[], object]] = [
        lambda: one.write_dataset(rows(0, 2500), dataset_uri, data_storage_version="0.1", max_rows_per_file=1000),
        lambda: other.write_dataset(rows(2500, 2600), dataset_uri, mode="append"),
        lambda: one.dataset(dataset_uri).delete("id % 7 = 0"),
        lambda: other.dataset(dataset_uri).delete("id % 7 = 1"),
        lambda: compact(one, dataset_uri),
        lambda: one.write_dataset(rows(2600, 2700), dataset_uri, mode="append"),
        lambda: compact(other, dataset_uri),
        lambda: lance_ops.dataset(dataset_uri).update({"word": "'b'"}, where="id < 50"),
        lambda: one.dataset(dataset_uri).create_scalar_index("id", "BTREE"),
        lambda: other.write_dataset(rows(0, 50), dataset_uri, mode="append"),
        lambda: lance_ops.dataset(dataset_uri).alter_columns({"path": "in.y", "name": "z"}),
        lambda: one.write_dataset(rows(5, 50), dataset_uri, mode="overwrite"),
        lambda: lance_ops.dataset(dataset_uri, version=3).restore(),
        lambda: lance_ops.dataset(dataset_uri).drop_columns(["bytes"]),
        lambda: other.dataset(dataset_uri).delete("id > 100"),
    ]
    for turn in turns:
        turn()
        assert_same(dataset_uri)
    for version in range(1, len(turns) + 1):
        old = lance_ops.dataset(dataset_uri, version=version).to_table()
        assert old.to_pylist() == lance.dataset(dataset_uri, version=version).to_table().to_pylist()


@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_dictionary_is_read_by_both(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    kind = pa.dictionary(data.draw(KEYS), data.draw(ENTRIES))
    texts = data.draw(st.lists(st.text("abé", min_size=1, max_size=4), min_size=1, max_size=6, unique=True))
    values = pa.array(range(len(texts))) if pa.types.is_integer(kind.value_type) else pa.array(texts)
    values = (
        values.cast(pa.binary()).cast(kind.value_type)
        if pa.types.is_binary(kind.value_type)
        else values.cast(kind.value_type)
    )
    keys = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=40))
    table = pa.table({"c": keyed(keys, values, kind.index_type)})
    folder = tmp_path_factory.mktemp("tables")
    for writer in (lance, lance_ops):
        uri = str(folder / writer.__name__)
        for mode in ("create", "append"):
            writer.write_dataset(table, uri, mode=mode, data_storage_version="0.1", max_rows_per_file=9)
        for reader in (lance, lance_ops):
            found = reader.dataset(uri).to_table()
            assert found.schema == table.schema
            assert found.to_pylist() == 2 * table.to_pylist()
            assert found.column("c").chunk(0).dictionary == values


def test_batches_of_a_first_write_are_brought_to_one_dictionary(dataset_uri: str) -> None:
    parts = [pa.array(values).dictionary_encode() for values in (["a", "b"] * 600, ["c", "b"] * 600, ["d"])]
    batches = [pa.record_batch({"c": part}) for part in parts]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    lance_ops.write_dataset(reader, dataset_uri, data_storage_version="0.1", max_rows_per_file=1000)

    expected = [value for part in parts for value in part.to_pylist()]
    for module in (lance_ops, lance):
        found = module.dataset(dataset_uri).to_table().column("c")
        assert found.to_pylist() == expected
        # the manifest's, though the first file was whole before "c" and "d" were met
        assert all(chunk.dictionary.to_pylist() == ["a", "b", "c", "d"] for chunk in found.chunks)
    lance.write_dataset(
        pa.table({"c": keyed([3], pa.array(["a", "b", "c", "d"]), pa.int32())}), dataset_uri, mode="append"
    )


@pytest.mark.parametrize(
    "column",
    [
        keyed([1, 0, 1], pa.array(["ccc", "ax"])),
        keyed([1, 2, 1], pa.array(["not used", "ccc", "ax"])),
        keyed([0, 1, 0], pa.array(["ax", "ccc", "b", "more"])),
        pa.array(["ax", "ccc", "ax"]),
    ],
    ids=["other order", "unused values", "longer", "no dictionary"],
)
@pytest.mark.parametrize("creator", [lance, lance_ops], ids=["theirs", "ours"])
def test_appended_keys_are_brought_to_the_tables_dictionary(column: pa.Array, creator: Any, dataset_uri: str) -> None:
    creator.write_dataset(pa.table({"c": keyed([0, 1, 2], WORDS)}), dataset_uri, data_storage_version="0.1")
    lance_ops.write_dataset(pa.table({"c": column}), dataset_uri, mode="append")
    for module in (lance_ops, lance):
        found = module.dataset(dataset_uri).to_table().column("c")
        assert found.to_pylist() == WORDS.to_pylist() + column.to_pylist()
        assert found.chunk(0).dictionary == WORDS


def test_a_value_that_is_not_in_the_dictionary_is_refused_by_name(dataset_uri: str) -> None:
    lance_ops.write_dataset(rows(0, 10), dataset_uri, data_storage_version="0.1")
    table = rows(0, 2)
    inner = pa.StructArray.from_arrays([keyed([0, 1], pa.array(["q", "new"])), pa.array([1, 2])], ["size", "y"])
    for name, column, says in (
        ("word", keyed([0, 1], pa.array(["b", "dd"])), "column 'word' has the value 'dd'"),
        ("in", inner, r"column 'in\.size' has the value 'new'"),
    ):
        changed = table.set_column(table.column_names.index(name), name, column)
        with pytest.raises(SchemaMismatch, match=says):
            lance_ops.write_dataset(changed, dataset_uri, mode="append")
    with pytest.raises(SchemaMismatch, match="'dd'"):
        lance_ops.dataset(dataset_uri).update({"word": "'dd'"})
    assert lance_ops.dataset(dataset_uri).version == 1
    assert_same(dataset_uri)


def test_what_the_reference_takes_for_null_stays_so_through_a_rewrite(dataset_uri: str) -> None:
    lance.write_dataset(
        pa.table({"c": keyed([0, 1, 2, 1], pa.array(["a", "", "c"]))}), dataset_uri, data_storage_version="0.1"
    )
    lance_ops.write_dataset(pa.table({"c": keyed([0, None], pa.array(["a"]))}), dataset_uri, mode="append")
    lance_ops.dataset(dataset_uri).delete("c = 'c'")
    lance_ops.dataset(dataset_uri).optimize.compact_files()
    for module in (lance_ops, lance):
        assert module.dataset(dataset_uri).to_table().column("c").to_pylist() == ["a", None, None, "a", None]


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (keyed([0, 1], pa.array(["a", ""])), SchemaMismatch),
        (keyed([0, None], pa.array(["a"])), SchemaMismatch),
        (keyed([0, 1], pa.array(["a", None])), SchemaMismatch),
        (keyed([0], pa.array([0.5])), UnsupportedFeature),
        (keyed([0], pa.array([True])), UnsupportedFeature),
    ],
    ids=["an empty string", "a null key", "a null value", "floats", "booleans"],
)
def test_what_readers_would_lose_or_not_open_is_refused(
    column: pa.Array, error: type[Exception], dataset_uri: str
) -> None:
    schema = pa.schema([pa.field("c", column.type)])
    with pytest.raises(error, match="'c'"):
        lance_ops.write_dataset(pa.table([column], schema=schema), dataset_uri, data_storage_version="0.1")
    with pytest.raises((OSError, InvalidInput, ValueError)):
        lance_ops.dataset(dataset_uri)


def test_a_dictionary_is_not_begun_apart_from_its_table(dataset_uri: str) -> None:
    data = pa.table({"c": keyed([0, 1], WORDS)})
    with pytest.raises(UnsupportedFeature, match="'c'"):
        lance_ops.LanceFragment.create(dataset_uri, data, data_storage_version="0.1")
    lance_ops.write_dataset(pa.table({"id": [1]}), dataset_uri, data_storage_version="0.1")
    with pytest.raises(UnsupportedFeature, match="'c'"):
        lance_ops.dataset(dataset_uri).add_columns(data.schema)


def test_an_empty_table_has_an_empty_dictionary(dataset_uri: str) -> None:
    empty = pa.table({"c": keyed([], WORDS)})
    lance_ops.write_dataset(empty, dataset_uri, data_storage_version="0.1")
    for module in (lance_ops, lance):
        assert module.dataset(dataset_uri).to_table() == empty.slice(0, 0)
    with pytest.raises(SchemaMismatch, match="overwrite the table"):
        lance_ops.write_dataset(pa.table({"c": keyed([0], WORDS)}), dataset_uri, mode="append")
    lance_ops.write_dataset(pa.table({"c": keyed([0], WORDS)}), dataset_uri, mode="overwrite")
    assert lance.dataset(dataset_uri).to_table().to_pylist() == [{"c": "ax"}]


@pytest.mark.parametrize("nested", [False, True], ids=["keys", "keys in lists"])
def test_a_key_beyond_the_manifests_values_is_corruption(nested: bool, dataset_uri: str) -> None:
    column: pa.Array = keyed([0, 1, 2], WORDS)
    if nested:
        column = pa.ListArray.from_arrays([0, 1, 2, 3], column)
    lance_ops.write_dataset(pa.table({"c": column}), dataset_uri, data_storage_version="0.1")
    (path,) = Path(dataset_uri, "_versions").glob("*.manifest")
    content = decode_manifest(path.read_bytes(), str(path))
    fewer = with_dictionaries(content.schema, lambda _: Dictionary(0, 2, WORDS[:2]))
    path.write_bytes(encode_manifest(replace(content, schema=fewer), b""))
    dataset = lance_ops.dataset(dataset_uri)
    assert dataset.take([1]).to_pylist() == [{"c": ["b"] if nested else "b"}]
    with pytest.raises(CorruptFile, match="column 'c'"):
        dataset.to_table()


def test_raw_files_are_ingested_into_the_tables_dictionary(dataset_uri: str, tmp_path: Path) -> None:
    lance_ops.write_dataset(pa.table({"c": keyed([0, 1, 2], WORDS)}), dataset_uri, data_storage_version="0.1")
    batches = []
    for name, words in (("one", ["ccc", "b"]), ("two", ["b", "ax"]), ("bad", ["dd"])):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"c": words}), path)
        batches.append(IngestBatch(name, (RawFile(str(path), path.stat().st_size, name),)))
    ingest(dataset_uri, batches[:2], options=IngestOptions(max_files_per_task=1))
    for module in (lance_ops, lance):
        found = module.dataset(dataset_uri).to_table().column("c").to_pylist()
        assert found == [*WORDS.to_pylist(), "ccc", "b", "b", "ax"]
    with pytest.raises(SchemaMismatch, match=r"bad\.parquet: column 'c' has the value 'dd'"):
        ingest(dataset_uri, batches[2:])

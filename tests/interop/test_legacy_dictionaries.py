"""Dictionary columns in 0.1 tables, whose values are stored in every manifest."""

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
from lance_ops.core.schema import Dictionary, with_dictionaries
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
def test_both_libraries_write_dictionaries_in_turns_and_read_the_same(one: Any, other: Any, dataset_uri: str) -> None:
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


def test_the_first_write_merges_the_dictionaries_of_its_batches(dataset_uri: str) -> None:
    parts = [pa.array(values).dictionary_encode() for values in (["a", "b"] * 600, ["c", "b"] * 600, ["d"])]
    batches = [pa.record_batch({"c": part}) for part in parts]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    lance_ops.write_dataset(reader, dataset_uri, data_storage_version="0.1", max_rows_per_file=1000)

    expected = [value for part in parts for value in part.to_pylist()]
    for module in (lance_ops, lance):
        found = module.dataset(dataset_uri).to_table().column("c")
        assert found.to_pylist() == expected
        # the manifest's values, although the first file was finished before "c" and "d" appeared
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
def test_appended_keys_are_mapped_to_the_tables_dictionary(column: pa.Array, creator: Any, dataset_uri: str) -> None:
    creator.write_dataset(pa.table({"c": keyed([0, 1, 2], WORDS)}), dataset_uri, data_storage_version="0.1")
    lance_ops.write_dataset(pa.table({"c": column}), dataset_uri, mode="append")
    for module in (lance_ops, lance):
        found = module.dataset(dataset_uri).to_table().column("c")
        assert found.to_pylist() == WORDS.to_pylist() + column.to_pylist()
        assert found.chunk(0).dictionary == WORDS


def test_a_value_missing_from_the_dictionary_is_refused_by_name(dataset_uri: str) -> None:
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


def test_values_that_the_reference_reads_as_null_stay_null_after_a_rewrite(dataset_uri: str) -> None:
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
def test_dictionaries_that_readers_would_lose_or_not_open_are_refused(
    column: pa.Array, error: type[Exception], dataset_uri: str
) -> None:
    schema = pa.schema([pa.field("c", column.type)])
    with pytest.raises(error, match="'c'"):
        lance_ops.write_dataset(pa.table([column], schema=schema), dataset_uri, data_storage_version="0.1")
    with pytest.raises((OSError, InvalidInput, ValueError)):
        lance_ops.dataset(dataset_uri)


def words(values: Sequence[str], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"c": pa.array(values).dictionary_encode().cast(pa.dictionary(kind or pa.int16(), pa.string()))})


def data_files(uri: str) -> set[str]:
    return {path.name for path in Path(uri, "data").glob("*.lance")}


def named_files(uri: str) -> set[str]:
    return {file.path for fragment in lance_ops.dataset(uri).get_fragments() for file in fragment.data_files()}


def test_uncommitted_fragments_define_the_dictionary_of_a_new_table(dataset_uri: str) -> None:
    made = [
        lance_ops.LanceFragment.create(dataset_uri, words(values), data_storage_version="0.1")
        for values in (["ax"], ["ax", "b", "ax"], ["ax", "b", "b", "ccc"])
    ]
    lance_ops.LanceDataset.commit(dataset_uri, lance_ops.LanceOperation.Overwrite(words(["x"]).schema, made))
    for module in (lance_ops, lance):
        found = module.dataset(dataset_uri).to_table()
        assert found.column("c").to_pylist() == ["ax", "ax", "b", "ax", "ax", "b", "b", "ccc"]
        assert all(chunk.dictionary.to_pylist() == ["ax", "b", "ccc"] for chunk in found.column("c").chunks)
    lance_ops.write_dataset(words(["ccc", "b"]), dataset_uri, mode="append")
    assert lance.dataset(dataset_uri).to_table().column("c").to_pylist()[-2:] == ["ccc", "b"]


def test_uncommitted_fragments_with_different_dictionaries_are_refused_by_column(dataset_uri: str) -> None:
    made = [
        lance_ops.LanceFragment.create(dataset_uri, words(values), data_storage_version="0.1")
        for values in (["ax", "b"], ["b", "ax"])
    ]
    with pytest.raises(SchemaMismatch, match="column 'c': the dictionary of"):
        lance_ops.LanceDataset.commit(dataset_uri, lance_ops.LanceOperation.Overwrite(words(["x"]).schema, made))
    assert len(data_files(dataset_uri)) == 2  # they belong to the caller


def test_an_all_null_column_starts_no_dictionary(dataset_uri: str) -> None:
    table = lance_ops.write_dataset(pa.table({"id": [1]}), dataset_uri, data_storage_version="0.1")
    with pytest.raises(UnsupportedFeature, match="'c'"):
        table.add_columns(words(["x"]).schema)


def test_ingestion_merges_the_dictionaries_of_its_tasks(dataset_uri: str, tmp_path: Path) -> None:
    batches = []
    for name, values in (("one", ["ccc", "b"] * 1500), ("two", ["b", "ax"]), ("three", ["ccc", "b", "z"])):
        path = tmp_path / f"{name}.parquet"
        column = keyed([0, 1], pa.array(["q", name]), pa.uint8()).take(pa.array([i % 2 for i in range(len(values))]))
        inner = pa.StructArray.from_arrays([column, pa.array(range(len(values)))], ["size", "y"])
        pq.write_table(words(values).append_column("in", inner), path)
        batches.append(IngestBatch(name, (RawFile(str(path), path.stat().st_size, name),)))
    ingest(dataset_uri, batches, options=IngestOptions(data_storage_version="0.1", max_files_per_task=1))
    for module in (lance_ops, lance):
        found = module.dataset(dataset_uri).to_table()
        assert found.column("c").to_pylist() == ["ccc", "b"] * 1500 + ["b", "ax", "ccc", "b", "z"]
        sizes = [row["size"] for row in found.column("in").to_pylist()]
        assert sizes == ["q", "one"] * 1500 + ["q", "two", "q", "three", "q"]
    assert data_files(dataset_uri) == named_files(dataset_uri)  # files that were replaced by rewritten ones are gone
    again = ingest(dataset_uri, batches)
    assert again.version is None


@pytest.fixture
def halves(dataset_uri: str) -> str:
    """A 0.1 table of two fragments with rows deleted, in batches of 70 rows."""
    table = pa.table({"id": pa.array(range(400))})
    options = {"data_storage_version": "0.1", "max_rows_per_file": 200, "max_rows_per_group": 70}
    lance.write_dataset(table, dataset_uri, **options)
    lance.dataset(dataset_uri).delete("id % 5 = 1")
    return dataset_uri


def added(batch: pa.RecordBatch) -> pa.RecordBatch:
    numbers = batch.column("id").to_pylist()
    return pa.record_batch({"c": pa.array([f"w{i // 100}" for i in numbers]).dictionary_encode()})


ADDITIONS: dict[str, Callable[[lance_ops.LanceDataset], object]] = {
    "function": lambda table: table.add_columns(added),
    "stream": lambda table: table.add_columns(
        pa.RecordBatchReader.from_batches(
            added(pa.record_batch({"id": [0]})).schema, (added(batch) for batch in table.to_batches(batch_size=50))
        )
    ),
    "join": lambda table: table.merge(
        pa.table({"id": range(400), "c": added(pa.record_batch({"id": range(400)})).column("c")}), "id"
    ),
}


@pytest.mark.parametrize("addition", ADDITIONS.values(), ids=ADDITIONS)
def test_a_column_added_to_a_legacy_table_adds_its_dictionary(
    addition: Callable[[lance_ops.LanceDataset], object], halves: str
) -> None:
    addition(lance_ops.dataset(halves))
    ids = [i for i in range(400) if i % 5 != 1]
    expected = [{"id": i, "c": f"w{i // 100}"} for i in ids]
    for module in (lance_ops, lance):
        table = module.dataset(halves)
        assert table.to_table().to_pylist() == expected
        assert table.take([0, 100, 319]).to_pylist() == [expected[at] for at in (0, 100, 319)]
        assert table.to_table(columns=["c"], filter="id > 350").to_pylist() == [{"c": "w3"}] * sum(i > 350 for i in ids)
        assert all(chunk.dictionary.to_pylist() == ["w0", "w1", "w2", "w3"] for chunk in table.to_table()["c"].chunks)
    assert data_files(halves) == named_files(halves)
    lance.dataset(halves).delete("id < 10")
    lance_ops.dataset(halves).update({"c": "'w0'"}, where="id > 390")
    lance_ops.dataset(halves).optimize.compact_files()
    lance_ops.dataset(halves).validate()
    for module in (lance_ops, lance):
        found = module.dataset(halves).to_table().to_pylist()
        assert sorted((row["id"], row["c"]) for row in found) == [
            (i, "w0" if i > 390 else f"w{i // 100}") for i in ids if i >= 10
        ]


def test_merge_columns_on_fragments_adds_their_dictionary_at_commit(halves: str) -> None:
    def same(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"c": pa.array(["a", "b"] * len(batch))[: len(batch)].dictionary_encode()})

    table = lance_ops.dataset(halves)
    parts = [fragment.merge_columns(same) for fragment in table.get_fragments()]
    merge = lance_ops.LanceOperation.Merge([fragment for fragment, _ in parts], parts[0][1])
    lance_ops.LanceDataset.commit(halves, merge, read_version=table.version)
    for module in (lance_ops, lance):
        assert module.dataset(halves).to_table().column("c").to_pylist() == ["a", "b"] * 160


@pytest.mark.parametrize("adder", [lance_ops, lance], ids=["ours", "theirs"])
def test_columns_added_to_a_legacy_table_are_read_by_both(adder: Any, halves: str) -> None:
    adder.dataset(halves).add_columns({"twice": "id * 2"})
    adder.dataset(halves).alter_columns({"path": "twice", "data_type": pa.int32()})
    adder.dataset(halves).merge(pa.table({"id": range(400), "text": [f"t{i}" for i in range(400)]}), "id")
    rows = [{"id": i, "twice": 2 * i, "text": f"t{i}"} for i in range(400) if i % 5 != 1]
    for module in (lance_ops, lance):
        assert module.dataset(halves).to_table().to_pylist() == rows
        some = module.dataset(halves).to_table(filter="twice > 100 AND twice < 130")
        assert some.to_pylist() == [row for row in rows if 50 < int(str(row["id"])) < 65]


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

"""Schema changes by either library produce the same table and the same transactions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_ops
from lance_ops.file import LanceFileWriter
from lance_ops.table import DataFile
from lance_ops.transactions import DataReplacement, DataReplacementGroup
from lance_ops.writing.commit import commit_operation
from tests.interop.transactions import shape_of

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

KEYS = pa.array([1, 5, 77], pa.int32())


def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(10), pa.int32()),
            "v": [float(i) for i in range(10)],
            "s": [f"a{i}" for i in range(10)],
            "p": [{"x": i, "y": str(i)} if i % 3 else None for i in range(10)],
        }
    )


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([pc.multiply(batch["v"], 2)], ["d"])


CHANGES: dict[str, Callable[[Any], Any]] = {
    "computed": lambda d: d.add_columns({"w": "v * 2", "k": "id + 1"}),
    "function": lambda d: d.add_columns(doubled, read_columns=["v"]),
    "stream": lambda d: d.add_columns(pa.table({"r": range(9)})),
    "null columns": lambda d: d.add_columns(
        pa.schema([pa.field("z", pa.int32()), pa.field("q", pa.struct([pa.field("r", pa.string())]))])
    ),
    "null field of a struct": lambda d: d.add_columns(
        pa.schema([pa.field("p", pa.struct([pa.field("z", pa.int8())]))])
    ),
    "join": lambda d: d.merge(pa.table({"id": KEYS, "m": ["x", "y", "z"]}), "id"),
    "drop": lambda d: d.drop_columns(["v"]),
    "drop a field": lambda d: d.drop_columns(["p.x"]),
    "drop a struct by its fields": lambda d: d.drop_columns(["p.x", "p.y"]),
    "rename": lambda d: d.alter_columns({"path": "v", "name": "vv"}, {"path": "p.x", "name": "xx"}),
    "forbid nulls": lambda d: d.alter_columns({"path": "v", "nullable": False}),
    "cast": lambda d: d.alter_columns({"path": "id", "data_type": pa.int64()}),
    "cast and rename": lambda d: d.alter_columns({"path": "s", "data_type": pa.large_string(), "name": "text"}),
    "cast a field": lambda d: d.alter_columns({"path": "p.x", "data_type": pa.int32()}),
    "config": lambda d: d.update_config({"a": "b", "c": "d"}),
    "table metadata": lambda d: d.update_metadata({"a": "b"}),
    "schema metadata": lambda d: d.update_schema_metadata({"a": "b"}, replace=True),
    "field metadata": lambda d: d.update_field_metadata({"v": {"a": "b"}, "p.y": {"c": "d"}}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_both_libraries_make_the_same_table_and_transaction(tmp_path: Path, name: str) -> None:
    made = []
    for who in ("ours", "theirs"):
        uri = str(tmp_path / who)
        lance.write_dataset(table(), uri, max_rows_per_file=5).delete("id = 2")
        CHANGES[name]((lance_ops if who == "ours" else lance).dataset(uri))
        made.append(lance_ops.dataset(uri))
        reference = lance.dataset(uri)
        reference.validate()
        made[-1].validate()
        assert reference.to_table() == made[-1].to_table()
        assert reference.schema == made[-1].schema
        assert reference.max_field_id == made[-1].max_field_id
    ours, theirs = made
    assert ours.version == theirs.version == 3
    assert ours.to_table() == theirs.to_table()
    assert ours.snapshot.schema == theirs.snapshot.schema
    mine, other = (transaction.operation for d in made if (transaction := d.read_transaction(3)))
    assert type(mine) is type(other)
    assert shape_of(mine) == shape_of(other)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_each_library_changes_the_table_that_the_other_made(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(table().drop_columns(["p"]), uri, max_rows_per_file=4, data_storage_version=version)
    lance_ops.dataset(uri).add_columns({"w": "id * 10"})
    lance.dataset(uri).update({"w": "w + 1"}, "id > 7")
    lance_ops.dataset(uri).alter_columns({"path": "w", "data_type": pa.int64()})
    lance.dataset(uri).add_columns({"u": "w + 1"})
    lance_ops.dataset(uri).drop_columns(["v"])
    lance.dataset(uri).optimize.compact_files()
    lance_ops.dataset(uri).merge_insert("id").when_matched_update_all().execute(
        pa.table({"id": pa.array([3], pa.int32()), "u": pa.array([-1], pa.int64())})
    )
    lance.dataset(uri).validate()
    lance_ops.dataset(uri).validate()
    expected = {i: (10 * i + (i > 7), 10 * i + (i > 7) + 1 if i != 3 else -1) for i in range(10)}
    for dataset in (lance.dataset(uri), lance_ops.dataset(uri)):
        found = dataset.to_table(columns=["id", "w", "u"]).to_pylist()
        assert {row["id"]: (row["w"], row["u"]) for row in found} == expected


STRUCTS = [{"x": 1, "y": "a"}, None, {"x": None, "y": None}, {"x": 4, "y": "d"}]


def columns_read_by_both(uri: str, name: str) -> list[Any]:
    ours, theirs = lance_ops.dataset(uri).to_table(), lance.dataset(uri).to_table()
    assert ours.equals(theirs)
    found: list[Any] = ours.column(name).to_pylist()
    return found


@pytest.mark.parametrize("library", [lance_ops, lance])
def test_a_struct_stored_in_several_files_is_null_where_every_file_says_so(tmp_path: Path, library: Any) -> None:
    kind = pa.struct([("x", pa.int64()), ("y", pa.string())])
    uri = library.write_dataset(pa.table({"id": range(4), "p": pa.array(STRUCTS, kind)}), str(tmp_path / "t")).uri
    source = pa.table({"id": [0, 1], "p": pa.array([None, {"x": 9}], pa.struct([("x", pa.int64())]))})
    lance.dataset(uri).merge_insert("id").when_matched_update_all().execute(source)  # writes `x` apart from `y`
    files = lance_ops.dataset(uri).snapshot.fragments[0].files
    assert len(files) == 2
    assert columns_read_by_both(uri, "p") == [{"x": None, "y": "a"}, {"x": 9, "y": None}, *STRUCTS[2:]]


@pytest.mark.parametrize("library", [lance_ops, lance])
def test_a_struct_without_a_field_in_any_file_is_null(tmp_path: Path, library: Any) -> None:
    uri = lance.write_dataset(pa.table({"id": [0, 1], "p": [{"x": 1}, {"x": 2}]}), str(tmp_path / "t")).uri
    library.dataset(uri).add_columns(pa.field("p", pa.struct([("z", pa.int64())])))
    assert columns_read_by_both(uri, "p") == [{"x": 1, "z": None}, {"x": 2, "z": None}]
    library.dataset(uri).drop_columns(["p.x"])
    assert columns_read_by_both(uri, "p") == [None, None]


@pytest.mark.parametrize(("version", "left"), [("2.0", None), ("2.1", None), ("2.2", [[{"y": "a"}], None])])
def test_a_field_of_structs_in_a_list_is_dropped_alone(tmp_path: Path, version: str, left: object) -> None:
    rows = pa.table({"id": [0, 1], "l": [[{"x": 1, "y": "a"}], None]})
    for library in (lance_ops, lance):
        uri = lance.write_dataset(rows, str(tmp_path / library.__name__), data_storage_version=version).uri
        library.dataset(uri).drop_columns(["l.item.x"])
        if library is lance and left is None:
            assert lance.dataset(uri).schema.names == ["id"]  # before 2.2 the reference drops the whole list
        else:
            assert columns_read_by_both(uri, "l") == [[{"y": "a"}], None]


def merge_in_place(dataset: Any) -> None:
    merge = dataset.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    merge.execute(pa.table({"id": pa.array([3], pa.int32()), "v": [-1.0]}))


def replace_values(dataset: Any) -> None:
    path = Path(dataset.uri, "data", "new.lance")
    with LanceFileWriter(path, pa.schema([("w", pa.float64())])) as writer:
        writer.write_batch(pa.table({"w": [0.0] * 5}))
    file = DataFile("new.lance", (dataset.snapshot.schema.field("w").id,), (0,), 2, 2, path.stat().st_size)
    commit_operation(dataset.snapshot, DataReplacement((DataReplacementGroup(0, file),)))


@pytest.mark.parametrize(("change", "column"), [(merge_in_place, "v"), (replace_values, "w")])
@pytest.mark.parametrize("library", [lance_ops, lance])
def test_new_values_of_a_concurrently_dropped_column_are_removed(
    tmp_path: Path, library: Any, change: Callable[[Any], None], column: str
) -> None:
    uri = lance.write_dataset(table().drop_columns(["p"]), str(tmp_path / "t"), max_rows_per_file=5).uri
    lance_ops.dataset(uri).add_columns({"w": "v * 2"})
    stale = lance_ops.dataset(uri)
    library.dataset(uri).drop_columns([column])
    change(stale)
    assert lance.dataset(uri).version == 4
    left = [name for name in ("id", "v", "s", "w") if name != column]
    for dataset in (lance_ops.dataset(uri), lance.dataset(uri)):
        dataset.validate()
        assert dataset.to_table().column_names == left
        assert dataset.to_table(["id", "s"]).sort_by("id") == table().select(["id", "s"])

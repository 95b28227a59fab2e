"""Merges by either library produce the same rows and the same transactions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing.merge_insert import primary_key
from lance_ops.errors import InvalidInput
from lance_ops.transactions import InsertedKeys
from tests.interop.transactions import shape_of

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

Build = Callable[[Any], Any]

LINEAGE = ("_row_created_at_version", "_row_last_updated_at_version")
KEY = "lance-schema:unenforced-primary-key"
PRIMARY_KEY = {KEY: "true"}


def table(keys: Any = range(20)) -> pa.Table:
    keys = list(keys)
    return pa.table(
        {
            "id": pa.array(keys, pa.int32()),
            "v": pa.array([float(i) for i in range(len(keys))]),
            "s": [f"a{i}" for i in range(len(keys))],
        }
    )


def source(*keys: int | None) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(keys, pa.int32()),
            "v": pa.array([100.0 + (key or 0) for key in keys]),
            "s": pa.array([f"n{key}" for key in keys], pa.string()),
        }
    )


def upsert(builder: Any) -> Any:
    return builder.when_matched_update_all().when_not_matched_insert_all()


MERGES: dict[str, tuple[Build, pa.Table, Any]] = {
    "upsert": (upsert, source(1, 7, 40), "id"),
    "insert": (lambda b: b.when_not_matched_insert_all(), source(1, 7, 40), "id"),
    "update": (lambda b: b.when_matched_update_all(), source(1, 17, 40), "id"),
    "condition": (
        lambda b: b.when_matched_update_all("source.v > 105 AND target.v < 8").when_not_matched_insert_all(),
        source(1, 7, 11, 40),
        "id",
    ),
    "delete": (lambda b: b.when_matched_delete(), source(1, 7, 40), "id"),
    "delete and insert": (lambda b: b.when_matched_delete().when_not_matched_insert_all(), source(1, 7, 40), "id"),
    "fail, and nothing matches": (
        lambda b: b.when_matched_fail().when_not_matched_insert_all(),
        source(40, 41),
        "id",
    ),
    "replace the table": (lambda b: upsert(b).when_not_matched_by_source_delete(), source(1, 7, 40), "id"),
    "replace a part": (lambda b: upsert(b).when_not_matched_by_source_delete("id > 5"), source(1, 7, 40), "id"),
    "delete the rest": (lambda b: b.when_not_matched_by_source_delete("v > 5"), source(1, 7, 40), "id"),
    "new key twice": (upsert, source(40, 40, 1), "id"),
    "null keys": (upsert, source(1, None, None), "id"),
    "part of the columns": (upsert, source(1, 40).select(["id", "v"]), "id"),
    "part of the columns, updates only": (
        lambda b: b.when_matched_update_all(),
        source(1, 40).select(["id", "s"]),
        "id",
    ),
    "columns in place": (
        lambda b: b.when_matched_update_all("source.v > 105").write_mode("rewrite_columns"),
        source(1, 7, 17, 40).select(["v", "id"]),
        "id",
    ),
    "columns in another order": (upsert, source(1, 40).select(["s", "id", "v"]), "id"),
    "two keys": (
        upsert,
        pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": [5.0, 6.0, 7.0], "s": ["a1", "a3", "a3"]}),
        ["id", "s"],
    ),
    "all rows of a fragment": (upsert, source(*range(10)), "id"),
}


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("name", MERGES)
def test_both_libraries_merge_to_the_same_rows_and_transaction(tmp_path: Path, name: str, stable: bool) -> None:
    build, rows, on = MERGES[name]
    keys = [*range(18), None, None] if name == "null keys" else range(20)
    made, results = [], []
    for who in ("ours", "theirs"):
        uri = str(tmp_path / who)
        lance.write_dataset(table(keys), uri, max_rows_per_file=10, enable_stable_row_ids=stable)
        dataset = (lance_ops if who == "ours" else lance).dataset(uri)
        results.append(build(dataset.merge_insert(on)).execute(rows))
        made.append(lance_ops.dataset(uri))
        lance.dataset(uri).validate()
        made[-1].validate()
        assert lance.dataset(uri).to_table(with_row_id=True) == made[-1].to_table(with_row_id=True)
    assert results[0] == results[1]
    ours, theirs = (sorted(map(str, dataset.to_table().to_pylist())) for dataset in made)
    assert ours == theirs
    operations = [transaction.operation for dataset in made if (transaction := dataset.read_transaction(2))]
    assert shape_of(operations[0]) == shape_of(operations[1])
    if stable:
        tables = [lance.dataset(dataset.uri).to_table(columns=["id", *LINEAGE], with_row_id=True) for dataset in made]
        # The order in which inserted rows get their ids is unspecified.
        old = [[str(row) for row in rows.to_pylist() if row["_rowid"] < 20] for rows in tables]
        assert sorted(old[0]) == sorted(old[1])


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([1, -2, 3]),
        pa.array([1, 2, 3], pa.int32()),
        pa.array([1, 2, 2**63 + 1], pa.uint64()),
        pa.array(["", "a", "x" * 70]),
        pa.array([b"\0", b"a", b"bc"]),
    ],
    ids=lambda keys: str(keys.type),
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "composite"])
def test_inserted_primary_keys_are_recorded_in_the_reference_s_filter(
    tmp_path: Path, keys: pa.Array, beside: bool
) -> None:
    fields = [pa.field("k", keys.type, False, PRIMARY_KEY), pa.field("v", pa.int64(), not beside)]
    if beside:
        fields[1] = fields[1].with_metadata(PRIMARY_KEY)
    rows = pa.table([keys, pa.array([1, 2, 3])], schema=pa.schema(fields))
    filters = []
    for who in ("ours", "theirs"):
        uri = str(tmp_path / who)
        lance.write_dataset(rows.slice(0, 1), uri)
        upsert((lance_ops if who == "ours" else lance).dataset(uri).merge_insert()).execute(rows)
        transaction = lance_ops.dataset(uri).read_transaction(2)
        assert transaction is not None
        assert isinstance(transaction.operation, lance_ops.LanceOperation.Update)
        assert transaction.operation.inserted_rows is not None
        filters.append(InsertedKeys.decode(transaction.operation.inserted_rows))
    assert filters[0] == filters[1]
    assert filters[0].bloom


@pytest.mark.parametrize("value", ["true", "YES", "1", "on", "y", "t", "false", ""])
def test_a_primary_key_is_declared_as_in_the_reference(tmp_path: Path, value: str) -> None:
    key = pa.field("s", pa.struct([pa.field("a", pa.int64(), False, {KEY: value})]), False)
    keys = []
    for writer in (lance, lance_ops):
        uri = str(tmp_path / writer.__name__)
        writer.write_dataset(pa.table({"s": [{"a": 1}]}, pa.schema([key])), uri)
        keys.append(primary_key(lance_ops.dataset(uri).snapshot))
    assert keys[0] == keys[1] == (("s.a",) if value not in ("t", "false", "") else ())
    uri = str(tmp_path / "later")
    lance_ops.write_dataset(pa.table({"x": [1]}, pa.schema([pa.field("x", pa.int64(), False)])), uri)
    for module in (lance, lance_ops):
        dataset = module.dataset(uri)
        if keys[0]:
            dataset.update_field_metadata({"x": {KEY: value}})
            assert primary_key(lance_ops.dataset(uri).snapshot) == ("x",)
            with pytest.raises((ValueError, OSError), match="cannot be changed"):
                dataset.update_field_metadata({"x": {KEY: None}})
        else:
            with pytest.raises((ValueError, OSError), match="primary.key"):
                dataset.update_field_metadata({"x": {KEY: value}})


@pytest.mark.parametrize(
    "column",
    [
        pa.field("k", pa.int64(), True, PRIMARY_KEY),
        pa.field("k", pa.list_(pa.int64()), False, PRIMARY_KEY),
        pa.field("k", pa.struct([pa.field("a", pa.int64(), False, PRIMARY_KEY)])),
    ],
)
def test_a_primary_key_that_the_reference_refuses_is_refused(tmp_path: Path, column: pa.Field) -> None:
    schema = pa.schema([column])
    with pytest.raises(OSError, match="Primary key"):
        lance.write_dataset(schema.empty_table(), str(tmp_path / "theirs"), schema=schema)
    with pytest.raises(InvalidInput, match=r"column 'k(\.a)?' is a part of the primary key"):
        lance_ops.write_dataset(schema.empty_table(), tmp_path / "ours")


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_two_writers_that_insert_the_same_primary_key_insert_it_once(tmp_path: Path, first: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), False, PRIMARY_KEY), pa.field("v", pa.string())])
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": [1], "v": ["old"]}, schema=schema), uri)
    handles = {"ours": lance_ops.dataset(uri), "theirs": lance.dataset(uri)}
    order = sorted(handles, key=lambda who: who != first)
    for who in order:
        upsert(handles[who].merge_insert("id")).execute(pa.table({"id": [2], "v": [who]}, schema=schema))
    assert lance.dataset(uri).to_table().to_pydict() == {"id": [1, 2], "v": ["old", order[1]]}


@pytest.mark.parametrize("library", [lance_ops, lance], ids=["ours", "theirs"])
@pytest.mark.parametrize("change", ["append", "update of the key", "merge by another column"])
def test_a_merge_finds_the_primary_key_that_another_change_brought_meanwhile(
    tmp_path: Path, library: Any, change: str
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), False, PRIMARY_KEY), pa.field("v", pa.string())])
    uri = str(tmp_path / "t")
    new = pa.table({"id": [7], "v": ["first"]}, schema=schema)
    library.write_dataset(pa.table({"id": [1], "v": ["old"]}, schema=schema), uri)
    merging, changing = library.dataset(uri), library.dataset(uri)
    if change == "append":
        changing.insert(new)
    elif change == "update of the key":
        changing.update({"id": "7"})
    else:
        upsert(changing.merge_insert("v")).execute(new)
    upsert(merging.merge_insert("id")).execute(pa.table({"id": [7], "v": ["second"]}, schema=schema))
    rows = library.dataset(uri).to_table().to_pylist()
    assert [row["v"] for row in rows if row["id"] == 7] == ["second"]


STRUCT = pa.struct([("x", pa.int64()), ("in", pa.struct([("y", pa.int64()), ("z", pa.string())]))])
STRUCTS = [{"x": i, "in": {"y": i, "z": str(i)}} for i in range(3)] + [None]
GIVEN: dict[str, list[Any]] = {
    "one field": [{"x": 10}, None, {"x": None}, {"x": 13}, {"x": 14}],
    "a field of a field": [{"in": {"z": "a"}}, {"in": None}, None, {"in": {"z": "d"}}, {"in": {"z": "e"}}],
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize(
    "clauses",
    [
        lambda merge: merge.when_matched_update_all(),
        upsert,
        lambda merge: merge.when_matched_update_all("source.id < 3"),
        lambda merge: merge.when_matched_update_all().write_mode("rewrite_columns"),
    ],
    ids=["update", "upsert", "condition", "in place"],
)
def test_fields_that_the_source_lacks_keep_their_values(tmp_path: Path, given: str, clauses: Build) -> None:
    rows = pa.table({"id": range(4), "p": pa.array(STRUCTS, STRUCT), "v": range(4)})
    new = pa.table({"id": range(5), "p": GIVEN[given]})
    tables = []
    for library in (lance_ops, lance):
        uri = lance.write_dataset(rows, str(tmp_path / library.__name__), max_rows_per_file=2).uri
        clauses(library.dataset(uri).merge_insert("id")).execute(new)
        tables.append(lance_ops.dataset(uri).to_table().sort_by("id"))
        assert lance.dataset(uri).to_table().sort_by("id") == tables[-1]
    assert tables[0] == tables[1]
    assert tables[0].column("p")[0].as_py() != STRUCTS[0]
    kept = {"one field": "in", "a field of a field": "x"}[given]
    assert tables[0].column("p")[0].as_py()[kept] == rows.column("p")[0].as_py()[kept]

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.api import MergeInsertBuilder
from lance_ops.changing.merge_insert import MergeRequest, WhenMatched, plan_merge
from lance_ops.errors import InvalidFilter, InvalidInput, SchemaMismatch, TooManyConcurrentWriters, UnsupportedFeature
from lance_ops.transactions import TOKEN


def rows(*keys: int | None, value: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "v": pa.array([value + (key or 0) for key in keys], pa.int64()),
            "s": pa.array([f"{value}-{key}" for key in keys], pa.string()),
        }
    )


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(rows(*range(10)), dataset_uri, max_rows_per_file=4)


def values(dataset: lance_ops.LanceDataset) -> dict[int, int]:
    table = dataset.to_table(columns=["id", "v"])
    assert len(set(table["id"].to_pylist())) == table.num_rows
    return dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True))


def upsert(dataset: lance_ops.LanceDataset, on: Any = "id") -> MergeInsertBuilder:
    return dataset.merge_insert(on).when_matched_update_all().when_not_matched_insert_all()


def files(dataset: lance_ops.LanceDataset) -> list[Path]:
    return sorted(Path(dataset.uri).rglob("*"))


def test_an_upsert_updates_matching_rows_and_inserts_the_others(dataset: lance_ops.LanceDataset) -> None:
    result = upsert(dataset).execute(rows(2, 20, 9, value=100))
    assert result == {"num_inserted_rows": 1, "num_updated_rows": 2, "num_deleted_rows": 0}
    assert dataset.version == 2
    assert values(dataset) == {i: i for i in range(10)} | {2: 102, 9: 109, 20: 120}
    dataset.validate()


@pytest.mark.parametrize(
    "source",
    [
        rows(3, 30, value=50),
        rows(3, 30, value=50).to_batches()[0],
        rows(3, 30, value=50).to_reader(),
        rows(3, 30, value=50).to_pandas(),
        rows(3, 30, value=50).select(["s", "v", "id"]),
        rows(3, 30, value=50).cast(pa.schema({"id": pa.int16(), "v": pa.int32(), "s": pa.large_string()})),
    ],
    ids=["table", "batch", "reader", "pandas", "reordered", "narrower types"],
)
def test_a_merge_source_may_be_any_writable_data(dataset: lance_ops.LanceDataset, source: Any) -> None:
    upsert(dataset).execute(source)
    assert values(dataset) == {i: i for i in range(10)} | {3: 53, 30: 80}


def test_columns_that_the_source_lacks_stay_or_are_null(dataset: lance_ops.LanceDataset) -> None:
    upsert(dataset).execute(rows(1, 40, value=7).select(["id", "v"]))
    assert dataset.to_table(filter="id IN (1, 40)").to_pylist() == [
        {"id": 1, "v": 8, "s": "0-1"},
        {"id": 40, "v": 47, "s": None},
    ]


def test_a_nested_key_and_a_key_of_several_columns_match_by_all_of_it(dataset_uri: str) -> None:
    table = pa.table({"k": [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": None, "b": "x"}, None], "v": [1, 2, 3, 4]})
    dataset = lance_ops.write_dataset(table, dataset_uri)
    upsert(dataset, ["k.a", "k.b"]).execute(pa.table({"k": [{"a": 1, "b": "y"}, {"a": 2, "b": "y"}], "v": [20, 30]}))
    assert [row["v"] for row in dataset.to_table().to_pylist()] == [1, 3, 4, 20, 30]


def test_a_condition_keeps_rows_that_do_not_meet_it_and_inserts_none_for_them(dataset: lance_ops.LanceDataset) -> None:
    builder = dataset.merge_insert("id").when_matched_update_all("source.v > target.v AND target.s <> '0-3'")
    result = builder.when_not_matched_insert_all().execute(pa.concat_tables([rows(3, 4, 50, value=1), rows(5)]))
    assert result == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert values(dataset) == {i: i for i in range(10)} | {4: 5, 50: 51}


def test_rows_without_a_source_row_are_deleted_where_asked(dataset: lance_ops.LanceDataset) -> None:
    result = upsert(dataset).when_not_matched_by_source_delete("id < 8").execute(rows(1, 50, value=10))
    assert result == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 7}
    assert values(dataset) == {1: 11, 8: 8, 9: 9, 50: 60}


def test_a_merge_that_changes_nothing_makes_no_version_and_no_file(dataset: lance_ops.LanceDataset) -> None:
    before = files(dataset)
    for builder, source in (
        (upsert(dataset), rows()),
        (dataset.merge_insert("id").when_not_matched_insert_all(), rows(1, 2)),
        (dataset.merge_insert("id").when_matched_delete(), rows(77)),
        (dataset.merge_insert("id").when_matched_update_all("source.v > 100"), rows(1)),
    ):
        result = builder.execute(source)
        assert result == {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0}
    assert (dataset.version, files(dataset)) == (1, before)


def test_an_invalid_merge_is_refused_and_leaves_no_file(dataset: lance_ops.LanceDataset) -> None:
    before = files(dataset)
    good = rows(1, 50)
    cases: list[tuple[MergeInsertBuilder, pa.Table, type[Exception], str]] = [
        (dataset.merge_insert("id"), good, InvalidInput, "changes nothing"),
        (upsert(dataset, None), good, InvalidInput, "primary key"),
        (upsert(dataset, "nope"), good, InvalidInput, "'nope'"),
        (upsert(dataset), good.drop_columns(["id"]), InvalidInput, "no column 'id'"),
        (upsert(dataset), good.append_column("z", pa.array([1, 2])), SchemaMismatch, "'z'"),
        (upsert(dataset), rows(1, 50, 1), InvalidInput, "id = 1"),
        (dataset.merge_insert("id").when_matched_delete(), rows(1, 1), InvalidInput, "id = 1"),
        (dataset.merge_insert("id").when_matched_fail().when_not_matched_insert_all(), good, InvalidInput, "id = 1"),
        (dataset.merge_insert("id").when_matched_update_all("v > 1"), good, InvalidFilter, "'v'"),
        (dataset.merge_insert("id").when_matched_update_all("source.w > 1"), good, InvalidFilter, "'w'"),
        (upsert(dataset).when_not_matched_by_source_delete("w > 1"), good, InvalidFilter, "'w'"),
        (upsert(dataset).data_storage_version("0.1"), good, InvalidInput, "mixed"),
    ]
    for builder, source, error, message in cases:
        with pytest.raises(error, match=message):
            builder.execute(source)
    assert (dataset.version, files(dataset)) == (1, before)


def test_keys_that_have_no_equality_and_unknown_write_modes_are_named(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"l": [[1]], "v": [1]}), dataset_uri)
    with pytest.raises(UnsupportedFeature, match="'l'"):
        upsert(dataset, "l").execute(pa.table({"l": [[1]], "v": [2]}))
    with pytest.raises(InvalidInput, match="'fast'"):
        upsert(dataset, "v").write_mode("fast")


def test_floats_match_by_value(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"k": [0.0, float("nan"), 1.5], "v": [1, 2, 3]}), dataset_uri)
    upsert(dataset, "k").execute(pa.table({"k": [-0.0, float("nan")], "v": [10, 20]}))
    assert sorted(dataset.to_table()["v"].to_pylist()) == [3, 10, 20]


def test_few_keys_use_the_index_and_uncovered_rows_are_scanned(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(rows(*range(1000)), dataset_uri, max_rows_per_file=300)
    dataset.create_scalar_index("id", "BTREE")
    dataset = lance_ops.write_dataset(rows(*range(1000, 1100)), dataset, mode="append")
    source = rows(5, 305, 1005, 5000, value=10_000)
    request = MergeRequest(("id",), WhenMatched.UPDATE, inserts=True)

    plan = plan_merge(dataset.snapshot, request, source)
    assert plan.index_name == "id_idx"
    assert "ScalarIndexQuery" in plan.explain()
    scanning = plan_merge(dataset.snapshot, MergeRequest(("id",), WhenMatched.UPDATE, use_index=False), source)
    assert scanning.index_name is None
    assert plan_merge(dataset.snapshot, request, rows(*range(900))).index_name is None

    result = upsert(dataset).execute(source)
    assert result == {"num_inserted_rows": 1, "num_updated_rows": 3, "num_deleted_rows": 0}
    assert values(dataset) == {i: i for i in range(1100)} | {key: 10_000 + key for key in (5, 305, 1005, 5000)}
    again = upsert(dataset).use_index(False).execute(rows(5, 305, 6000, value=1))
    assert again == {"num_inserted_rows": 1, "num_updated_rows": 2, "num_deleted_rows": 0}


def test_conflicting_merges_are_planned_again_within_the_retry_limit(dataset: lance_ops.LanceDataset) -> None:
    other, late = lance_ops.dataset(dataset.uri), lance_ops.dataset(dataset.uri)
    upsert(dataset).execute(rows(1, 50, value=10))
    upsert(other).execute(rows(1, 2, 50, value=20))
    assert values(other) == {i: i for i in range(10)} | {1: 21, 2: 22, 50: 70}
    before = files(dataset)
    with pytest.raises(TooManyConcurrentWriters):
        upsert(late).conflict_retries(0).execute(rows(1, value=30))
    assert files(dataset) == before


def test_a_replay_under_the_same_token_is_done_once(dataset: lance_ops.LanceDataset) -> None:
    again = lance_ops.dataset(dataset.uri)
    insert = {TOKEN: "load-1"}
    upsert(dataset).execute(rows(60), transaction_properties=insert)
    before = files(dataset)
    upsert(again).execute(rows(60), transaction_properties=insert)
    assert again.version == 2
    assert files(dataset) == before


def test_blobs_are_merged_as_bytes_and_taken_along_where_the_source_lacks_them(dataset_uri: str) -> None:
    blobs = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), blobs, pa.field("v", pa.int64())])
    large = [b"x" * 1000, b"y" * 100_000, None]
    dataset = lance_ops.write_dataset(pa.table([[1, 2, 3], large, [0, 0, 0]], schema=schema), dataset_uri)
    upsert(dataset).execute(pa.table([[3, 4], [b"three", b"four"], [7, 7]], schema=schema))
    dataset.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [2], "v": [9]}))
    ids = dataset.to_table(columns=["id"])["id"].to_pylist()
    found = dataset.take_blobs("b", indices=list(range(4)))
    assert {key: blob and blob.readall() for key, blob in zip(ids, found, strict=True)} == {
        1: large[0],
        2: large[1],
        3: b"three",
        4: b"four",
    }
    partial = dataset.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    with pytest.raises(UnsupportedFeature, match="'b'"):
        partial.execute(pa.table([[1], [b"one"]], schema=pa.schema(list(schema)[:2])))


KEYS = st.none() | st.integers(0, 8)
SOURCE = st.lists(st.tuples(KEYS, st.integers(0, 9)), max_size=8)
Row = tuple[int | None, int]


@settings(max_examples=40)
@given(
    target=st.lists(st.tuples(KEYS, st.integers(0, 9)), max_size=12),
    source=SOURCE,
    matched=st.sampled_from(list(WhenMatched)),
    conditional=st.booleans(),
    inserts=st.booleans(),
    removes=st.sampled_from([None, "true", "v > 4"]),
)
def test_a_merge_equals_the_model_on_a_list_of_rows(
    target: list[Row], source: list[Row], matched: WhenMatched, conditional: bool, inserts: bool, removes: str | None
) -> None:
    conditional = conditional and matched is WhenMatched.UPDATE
    expected = model_merge(target, source, matched, conditional, inserts, removes)
    with tempfile.TemporaryDirectory() as folder:
        dataset = lance_ops.write_dataset(as_table(target), folder + "/t", max_rows_per_file=5)
        builder = dataset.merge_insert("id")
        match matched:
            case WhenMatched.UPDATE:
                builder.when_matched_update_all("source.v > target.v" if conditional else None)
            case WhenMatched.DELETE:
                builder.when_matched_delete()
            case WhenMatched.FAIL:
                builder.when_matched_fail()
        if inserts:
            builder.when_not_matched_insert_all()
        if removes:
            builder.when_not_matched_by_source_delete(removes)
        if expected is None:
            with pytest.raises(InvalidInput):
                builder.execute(as_table(source))
            assert dataset.version == 1
            return
        result = builder.execute(as_table(source))
        table = dataset.to_table()
        found = sorted(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True), key=str)
        assert (found, list(result.values())) == (sorted(expected[0], key=str), expected[1])
        dataset.validate()


def as_table(rows: list[Row]) -> pa.Table:
    return pa.table(
        {"id": pa.array([key for key, _ in rows], pa.int64()), "v": pa.array([v for _, v in rows], pa.int64())}
    )


def model_merge(
    target: list[Row], source: list[Row], matched: WhenMatched, conditional: bool, inserts: bool, removes: str | None
) -> tuple[list[Row], list[int]] | None:
    """Return the rows after the merge with the counts of inserted, updated and deleted; None where it is refused."""
    if matched is WhenMatched.KEEP and not (inserts or removes):
        return None
    out: list[Row] = []
    inserted = updated = deleted = 0
    for key, old in target:
        pairs = [new for other, new in source if key is not None and other == key]
        if not pairs:
            if removes == "true" or (removes and old > 4):
                deleted += 1
            else:
                out.append((key, old))
            continue
        if matched is WhenMatched.FAIL:
            return None
        if matched is WhenMatched.KEEP:
            out.append((key, old))
            continue
        pairs = [new for new in pairs if not conditional or new > old]
        if len(pairs) > 1:
            return None
        if matched is WhenMatched.DELETE:
            deleted += 1
        elif pairs:
            updated += 1
            out.append((key, pairs[0]))
        else:
            out.append((key, old))
    if inserts:
        there = {key for key, _ in target if key is not None}
        new_rows = [(key, value) for key, value in source if key is None or key not in there]
        inserted = len(new_rows)
        out += new_rows
    return out, [inserted, updated, deleted]


@pytest.mark.parametrize("verb", ["update and insert", "insert", "join"])
def test_values_of_a_sliced_source_are_those_of_its_rows(dataset_uri: str, verb: str) -> None:
    def matrices(count: int) -> pa.Table:
        numbers = pa.FixedSizeListArray.from_arrays(pa.array(range(count * 6), pa.int32()), 3)
        return pa.table({"id": range(count), "m": pa.FixedSizeListArray.from_arrays(numbers, 2)})

    everything = matrices(40)
    expected = dict(zip(everything["id"].to_pylist(), everything["m"].to_pylist(), strict=True))
    dataset = lance_ops.write_dataset(everything.slice(0, 25), dataset_uri, max_rows_per_file=7)
    source = everything.slice(10)
    if verb == "update and insert":
        upsert(dataset).execute(source)
    elif verb == "insert":
        dataset.merge_insert("id").when_not_matched_insert_all().execute(source)
    else:
        dataset.drop_columns(["m"])
        dataset.merge(source, "id")
    found = dataset.to_table()
    first = 10 if verb == "join" else 0
    assert found.num_rows == (25 if verb == "join" else 40)
    for key, matrix in zip(found["id"].to_pylist(), found["m"].to_pylist(), strict=True):
        assert matrix == (expected[key] if key >= first else None)

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.changing import row_updates
from lance_ops.errors import InvalidFilter, InvalidInput, SchemaMismatch, TooManyConcurrentWriters, UnsupportedFeature
from lance_ops.transactions import TOKEN
from lance_ops.writing import UpdatedRowWriter


def rows(count: int = 10) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(count), pa.int32()),
            "v": pa.array([float(i) for i in range(count)]),
            "s": pa.array([f"a{i}" for i in range(count)]),
        }
    )


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(rows(), dataset_uri, max_rows_per_file=5)


def column(dataset: lance_ops.LanceDataset, name: str) -> dict[int, Any]:
    table = dataset.to_table(columns=["id", name])
    return dict(zip(table["id"].to_pylist(), table[name].to_pylist(), strict=True))


def test_matching_rows_get_new_values_and_the_others_keep_theirs(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.update({"v": "v * 2 + id", "s": "upper(s)"}, where="id >= 3 AND id < 6") == {"num_rows_updated": 3}

    assert dataset.version == 2
    assert column(dataset, "v") == {i: float(3 * i if 3 <= i < 6 else i) for i in range(10)}
    assert column(dataset, "s") == {i: f"A{i}" if 3 <= i < 6 else f"a{i}" for i in range(10)}
    dataset.validate()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("NULL", [None, None, None]),
        ("7", [7.0, 7.0, 7.0]),
        ("'2.5'", [2.5, 2.5, 2.5]),
        ("-v", [0.0, -1.0, -2.0]),
        ("CAST(s = 'a1' AS INT) + 0.25", [0.25, 1.25, 0.25]),
        ("CASE WHEN id > 0 THEN 10 / id ELSE -1 END", [-1.0, 10.0, 5.0]),
        ("CASE id WHEN 0 THEN 1.5 WHEN 1 THEN v END", [1.5, 1.0, None]),
        ("CASE WHEN v IS NULL THEN 1 WHEN v > 1 OR NULL THEN 2 ELSE 3 END", [3.0, 3.0, 2.0]),
        ("coalesce(nullif(v, 1), 9)", [0.0, 9.0, 2.0]),
    ],
)
def test_an_expression_is_computed_as_sql_does(
    dataset: lance_ops.LanceDataset, expression: str, expected: list[float | None]
) -> None:
    dataset.update({"v": expression}, "id < 3")
    assert [column(dataset, "v")[i] for i in range(3)] == expected


def test_values_are_computed_from_the_old_ones_whatever_the_order(dataset: lance_ops.LanceDataset) -> None:
    dataset.update({"v": "id", "id": "v + 100"}, "id < 2")
    assert sorted(dataset.to_table(filter="id >= 100").select(["id", "v"]).to_pylist(), key=lambda row: row["id"]) == [
        {"id": 100, "v": 0.0},
        {"id": 101, "v": 1.0},
    ]


def test_without_a_condition_every_row_is_updated_and_the_old_fragments_leave(dataset: lance_ops.LanceDataset) -> None:
    assert dataset.update({"v": "0"}) == {"num_rows_updated": 10}
    assert set(column(dataset, "v").values()) == {0.0}
    assert [fragment.fragment_id for fragment in dataset.get_fragments()] == [2]
    transaction = dataset.read_transaction(2)
    assert transaction is not None
    assert isinstance(transaction.operation, lance_ops.LanceOperation.Update)
    assert transaction.operation.removed_fragment_ids == (0, 1)


def test_an_update_of_no_row_makes_no_version_and_no_file(dataset: lance_ops.LanceDataset) -> None:
    before = sorted(Path(dataset.uri).rglob("*"))
    assert dataset.update({"v": "1"}, "id = 77") == {"num_rows_updated": 0}
    assert dataset.version == 1
    assert sorted(Path(dataset.uri).rglob("*")) == before


@pytest.mark.parametrize(
    ("updates", "error", "message"),
    [
        ({}, InvalidInput, "new value"),
        ({"nope": "1"}, InvalidInput, "'nope'"),
        ({"v": "nope + 1"}, InvalidFilter, "'nope'"),
        ({"v": "id +"}, InvalidFilter, "parse"),
        ({"v": "s"}, InvalidFilter, "cast it"),
        ({"v": "CASE WHEN id = 1 THEN 'x' ELSE 2 END"}, InvalidFilter, "CASE"),
        ({"id": "3000000000"}, InvalidFilter, "not in range"),
        ({"id": "10 / id"}, InvalidInput, "divide by zero"),
        ({"id": "id + 2147483647"}, InvalidInput, "'id'"),
    ],
)
def test_an_invalid_expression_is_refused_and_leaves_no_file(
    dataset: lance_ops.LanceDataset, updates: dict[str, str], error: type[Exception], message: str
) -> None:
    before = sorted(Path(dataset.uri).rglob("*"))
    with pytest.raises(error, match=message):
        dataset.update(updates)
    assert sorted(Path(dataset.uri).rglob("*")) == before


def test_a_field_inside_of_a_column_and_a_null_where_none_is_allowed_are_refused(dataset_uri: str) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("p", pa.struct({"x": pa.int32()}))])
    dataset = lance_ops.write_dataset(pa.table({"k": [1], "p": [{"x": 2}]}, schema=schema), dataset_uri)
    with pytest.raises(UnsupportedFeature, match=r"p\.x"):
        dataset.update({"p.x": "1"})
    with pytest.raises(SchemaMismatch, match="'k'"):
        dataset.update({"k": "NULL"})
    dataset.update({"p": "NULL", "k": "p.x"})
    assert dataset.to_table().to_pylist() == [{"k": 2, "p": None}]


def test_an_index_on_another_column_still_answers_and_one_on_the_column_scans_the_moved_rows(
    dataset: lance_ops.LanceDataset,
) -> None:
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("v", "BTREE")
    dataset.update({"v": "v + 100"}, "id IN (1, 7)")

    assert dataset.to_table(filter="id = 7")["v"].to_pylist() == [107.0]
    assert dataset.to_table(filter="v > 50")["id"].to_pylist() == [1, 7]
    assert dataset.to_table(filter="v = 7")["id"].to_pylist() == []
    plan = dataset.scanner(filter="v > 50").explain_plan()
    assert "ScalarIndexQuery" in plan
    assert "unindexed fragments scanned: 1" in plan


def test_two_updates_of_different_rows_both_land_and_of_the_same_rows_one_after_the_other(
    dataset: lance_ops.LanceDataset,
) -> None:
    other = lance_ops.dataset(dataset.uri)
    dataset.update({"v": "v + 1"}, "id = 1")
    other.update({"v": "v + 1"}, "id <= 1")
    assert other.version == 3
    assert [column(other, "v")[i] for i in range(3)] == [1.0, 3.0, 2.0]

    late = lance_ops.dataset(dataset.uri, version=2)
    with pytest.raises(TooManyConcurrentWriters):
        late.update({"v": "0"}, "id = 1", conflict_retries=0)
    assert column(lance_ops.dataset(dataset.uri), "v") == column(other, "v")
    other.validate()


def test_a_replay_under_the_same_token_is_done_once(dataset: lance_ops.LanceDataset) -> None:
    again = lance_ops.dataset(dataset.uri)
    token = {TOKEN: "raise-1"}
    dataset.update({"v": "v + 1"}, transaction_properties=token)
    again.update({"v": "v + 1"}, transaction_properties=token)
    assert again.version == 2
    assert column(again, "v") == {i: i + 1.0 for i in range(10)}
    assert len(list(Path(dataset.uri, "data").iterdir())) == 3


def _rows_of_all_types(count: int) -> pa.Table:
    ids = range(count)
    return pa.table(
        {
            "id": ids,
            "v": pa.array([None if at % 4 == 0 else at / 2 for at in ids], pa.float64()),
            "text": [f"row {at}" for at in ids],
            "list": pa.array([None if at % 5 == 0 else [at] * (at % 4) for at in ids], pa.list_(pa.int16())),
            "parts": pa.array([{"a": at, "b": None if at % 7 == 0 else str(at)} for at in ids]),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(range(2 * count), pa.float32()), 2),
            "none": pa.nulls(count, pa.int32()),
            "json": pa.array([f'{{"a":{at}}}' for at in ids], pa.json_()),
        }
    )


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_updated_rows_of_small_fragments_are_written_together(
    dataset_uri: str, stable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = _rows_of_all_types(60)
    written: list[int] = []
    write = UpdatedRowWriter.write_updated

    def recording(writer: UpdatedRowWriter, table: pa.Table, row_ids: Any) -> None:
        written.append(len(table))
        write(writer, table, row_ids)

    monkeypatch.setattr(UpdatedRowWriter, "write_updated", recording)
    found = []
    for most_bytes in (1 << 20, 500, 0):
        monkeypatch.setattr(row_updates, "_WRITTEN_BYTES", most_bytes)
        dataset = lance_ops.write_dataset(
            source, dataset_uri, mode="overwrite", max_rows_per_file=5, enable_stable_row_ids=stable
        )
        dataset.update({"v": "id + 0.5"}, where="id % 2 = 1")
        found.append(dataset.to_table(with_row_id=True).sort_by("id"))
        dataset.validate()
    assert found[0].drop(["_rowid"]) == found[2].drop(["_rowid"])
    assert found[0]["v"].to_pylist()[1::2] == [at + 0.5 for at in range(1, 60, 2)]
    assert found[0].drop(["v", "_rowid"]).to_pylist() == source.drop(["v"]).to_pylist()
    if stable:
        assert [[at - each["_rowid"][0].as_py() for at in each["_rowid"].to_pylist()] for each in found] == [
            [*range(60)]
        ] * 3
    assert written[0] == 30 and written[-12:] == [2, 3] * 6 and 1 < len(written) - 13 < 12


def test_updated_rows_with_dictionaries_are_written_fragment_by_fragment(dataset_uri: str) -> None:
    texts = pa.array(["a", "b", "b", "c"]).dictionary_encode()
    for at in range(3):
        part = pa.table({"id": range(4 * at, 4 * at + 4), "d": texts.take(pa.array([3 - at, 0, at, 1]))})
        lance_ops.write_dataset(part, dataset_uri, mode="append" if at else "create")
    dataset = lance_ops.dataset(dataset_uri)
    before = dataset.to_table().to_pylist()
    dataset.update({"id": "id + 100"})
    assert sorted(dataset.to_table().to_pylist(), key=lambda row: row["id"]) == [
        {"id": row["id"] + 100, "d": row["d"]} for row in before
    ]


VALUES: tuple[tuple[str, Callable[[int | None, int], int | None]], ...] = (
    ("NULL", lambda old, key: None),
    ("id", lambda old, key: key),
    ("v + 1", lambda old, key: None if old is None else old + 1),
    ("coalesce(v, 0) * 2 - id", lambda old, key: (old or 0) * 2 - key),
    (
        "CASE WHEN v > 3 THEN v % 3 WHEN v IS NULL THEN 5 END",
        lambda old, key: 5 if old is None else old % 3 if old > 3 else None,
    ),
)
CONDITIONS: tuple[tuple[str | None, Callable[[int | None, int], bool]], ...] = (
    (None, lambda old, key: True),
    ("id % 3 = 1", lambda old, key: key % 3 == 1),
    ("v IS NULL OR id < 4", lambda old, key: old is None or key < 4),
    ("NOT (v > 2)", lambda old, key: old is not None and not old > 2),
    ("id > 100", lambda old, key: False),
)


@settings(max_examples=15)
@given(
    st.lists(st.none() | st.integers(-9, 9), min_size=1, max_size=20),
    st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(CONDITIONS)), min_size=1, max_size=4),
)
def test_updates_equal_the_model_on_a_dictionary(start: list[int | None], steps: list[Any]) -> None:
    model = dict(enumerate(start))
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table({"id": pa.array(model), "v": pa.array(model.values(), pa.int64())})
        dataset = lance_ops.write_dataset(table, folder + "/t", max_rows_per_file=6)
        for (expression, compute), (condition, holds) in steps:
            hit = [key for key, old in model.items() if holds(old, key)]
            assert dataset.update({"v": expression}, condition) == {"num_rows_updated": len(hit)}
            model |= {key: compute(model[key], key) for key in hit}
            assert column(dataset, "v") == model
        dataset.validate()

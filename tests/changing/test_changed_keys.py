"""A source's key that the cast to the table's type would change matches no row: the merge or the delete is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.errors import RawFileRefused, SchemaMismatch
from lance_ops.runners import InThreads
from lance_ops.verbs import DeleteRows, Upsert
from tests.verbs.living import live

STORED = {
    "day": pa.array([date(2026, 1, 1), date(2026, 1, 2)]),
    "f": pa.array([0.1, 0.5], pa.float32()),
    "d": pa.array([Decimal("0.10"), Decimal("0.50")], pa.decimal128(10, 2)),
    "clock": pa.array([time(13), time(14)], pa.time64("us")),
    "x": pa.array([2.0**53, 0.5]),
    "flag": pa.array([True, False]),
}
CHANGED = [
    ("day", pa.array([datetime(2026, 1, 1, 13)], pa.timestamp("us"))),
    ("f", pa.array([0.1], pa.float64())),
    ("f", pa.array([Decimal("0.1")], pa.decimal128(10, 1))),
    ("d", pa.array([0.101], pa.float64())),
    ("d", pa.array([0.1], pa.float32())),
    ("f", pa.array([0.1], pa.float64()).dictionary_encode()),
    ("clock", pa.array([datetime(2026, 1, 1, 13)], pa.timestamp("us"))),
    ("x", pa.array([Decimal(2**53 + 1)], pa.decimal128(20, 0))),
    ("flag", pa.array([2])),
    ("flag", pa.array([1.0])),
]
NOT_STORED = ("day", pa.array([datetime(2026, 1, 1, 13)], pa.timestamp("us")).dictionary_encode())
"""No file holds a dictionary of moments."""
KEPT = [
    ("day", pa.array([datetime(2026, 1, 2), None], pa.timestamp("ns"))),
    ("f", pa.array([0.5, float("nan")], pa.float64())),
    ("f", pa.array([Decimal("0.5")], pa.decimal128(10, 1))),
    ("f", pa.array([0.5, float("nan")], pa.float64()).dictionary_encode()),
    ("d", pa.array([0.5], pa.float64())),
    ("d", pa.array([Decimal("0.5")], pa.decimal128(10, 1))),
    ("clock", pa.array([time(14), None], pa.time32("s"))),
    ("x", pa.array([Decimal("0.5"), None], pa.decimal128(20, 18))),
    ("x", pa.array([Decimal("0.5")], pa.decimal128(15, 1))),
    ("flag", pa.array([False])),
]


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    return lance_ops.write_dataset(pa.table(STORED), str(tmp_path / "t.lance"))


@pytest.mark.parametrize(("name", "key"), [*CHANGED, NOT_STORED])
def test_a_key_in_memory_that_the_cast_changes_is_refused_with_its_value(
    dataset: Any, name: str, key: pa.Array
) -> None:
    keys = pa.table({name: key})
    changes: list[Callable[[], Any]] = [
        lambda: dataset.delete_by_keys(keys, name),
        lambda: dataset.merge_insert(name).when_matched_delete().execute(keys),
        lambda: dataset.merge_insert(name).when_not_matched_by_source_delete().execute(keys),
    ]
    for change in changes:
        with pytest.raises(SchemaMismatch, match=f"'{name}' is .* (the cast changes |in the data)"):
            change()
    assert dataset.count_rows() == 2


@pytest.mark.parametrize(("name", "key"), KEPT)
def test_a_key_in_memory_of_another_type_that_keeps_its_value_matches(dataset: Any, name: str, key: pa.Array) -> None:
    assert dataset.delete_by_keys(pa.table({name: key}), name)["num_deleted_rows"] == 1
    assert dataset.to_table(columns=[name]).column(name)[0].as_py() == STORED[name][0].as_py()


@pytest.mark.parametrize(("name", "key"), CHANGED)
def test_a_key_of_a_file_or_a_dataset_that_tasks_read_is_refused_by_its_type(
    tmp_path: Path, dataset: Any, name: str, key: pa.Array
) -> None:
    keys = pa.table({name: key})
    file = str(tmp_path / "keys.parquet")
    pq.write_table(keys, file)
    other = lance_ops.write_dataset(keys, str(tmp_path / "keys.lance"))
    changes: list[Callable[[Any], Any]] = [
        lambda given: dataset.delete_by_keys(given, name, runner=InThreads()),
        lambda given: dataset.merge_insert(name).when_matched_delete().execute(given, runner=InThreads()),
    ]
    for source in (file, other):
        for change in changes:
            with pytest.raises(SchemaMismatch, match=f"key '{name}' is .* may change values"):
                change(source)
    for verb in (DeleteRows(key_files=(file,), on=(name,), reason="r"), Upsert((file,), (name,))):
        with pytest.raises(SchemaMismatch, match=f"key '{name}' is .* may change values"):
            live(verb, dataset)
    assert dataset.count_rows() == 2
    assert [path.name for path in Path(dataset.uri, "data").iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(("name", "text"), [("d", "0.101"), ("d", '"0.101"'), ("clock", '"2026-01-01T13:00:00"')])
def test_a_key_of_json_that_its_column_cannot_hold_is_refused_with_its_line(
    tmp_path: Path, dataset: Any, name: str, text: str
) -> None:
    file = tmp_path / "keys.json"
    file.write_text(f'{{"{name}": {text}}}\n')
    for runner in (None, InThreads()):
        with pytest.raises(RawFileRefused, match=f"line 1: column '{name}'"):
            dataset.delete_by_keys(str(file), name, runner=runner)
    assert dataset.count_rows() == 2


def test_a_key_of_text_is_read_in_the_type_of_the_table(tmp_path: Path, dataset: Any) -> None:
    file = tmp_path / "keys.csv"
    file.write_text("f\n0.1\n")
    assert dataset.delete_by_keys(str(file), "f")["num_deleted_rows"] == 1


@pytest.mark.parametrize(("name", "key"), [("flag", pa.array([2])), ("x", pa.array(["0.5"])), ("x", pa.array([True]))])
def test_a_verb_refuses_keys_of_another_kind_of_a_dataset(
    tmp_path: Path, dataset: Any, name: str, key: pa.Array
) -> None:
    other = lance_ops.write_dataset(pa.table({name: key}), str(tmp_path / "keys.lance"))
    for verb in (DeleteRows(key_files=(other.uri,), on=(name,), reason="r"), Upsert((other.uri,), (name,))):
        with pytest.raises(SchemaMismatch, match=f"its keys do not fit .*column '{name}' is .* in the data"):
            live(verb, dataset)
    assert dataset.count_rows() == 2

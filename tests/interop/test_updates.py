"""Updates by either library produce the same rows and the same transactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from tests.interop.transactions import shape_of

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(20), pa.int32()),
            "v": [i / 4 for i in range(20)],
            "s": [f"a{i}" if i % 5 else None for i in range(20)],
            "d": pa.array([f"k{i % 3}" for i in range(20)]).dictionary_encode(),
            "l": [[i, i + 1] for i in range(20)],
        }
    )


UPDATES: tuple[tuple[dict[str, str], str | None], ...] = (
    ({"v": "v + 1"}, "id < 3"),
    ({"v": "id * 2 + 0.5"}, None),
    ({"id": "v"}, "id IN (3, 17)"),
    ({"s": "concat(s, '-', id)", "v": "id"}, "id % 4 = 1"),
    ({"s": "id"}, "id < 10"),
    ({"id": "'7'"}, "id = 3"),
    ({"v": "NULL", "s": "upper(s)"}, "s IS NOT NULL AND v > 2"),
    ({"d": "'other'"}, "id = 4"),
    ({"v": "v / 3 - id % 3"}, "id > 15"),
)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize(("updates", "where"), UPDATES)
def test_both_libraries_update_to_the_same_rows_and_transaction(
    tmp_path: Path, updates: dict[str, str], where: str | None, stable: bool
) -> None:
    made: list[Any] = []
    for name in ("ours", "theirs"):
        uri = str(tmp_path / name)
        lance.write_dataset(table(), uri, max_rows_per_file=10, enable_stable_row_ids=stable)
        module = lance_ops if name == "ours" else lance
        assert module.dataset(uri).update(updates, where)["num_rows_updated"] > 0
        made.append(lance_ops.dataset(uri))
        lance.dataset(uri).validate()
        made[-1].validate()
        assert (
            lance.dataset(uri).to_table(with_row_id=True).to_pylist() == made[-1].to_table(with_row_id=True).to_pylist()
        )
    ours, theirs = made
    assert ours.to_table(with_row_id=True).to_pylist() == theirs.to_table(with_row_id=True).to_pylist()
    operations = [dataset.read_transaction(2).operation for dataset in made]
    assert all(isinstance(operation, lance_ops.LanceOperation.Update) for operation in operations)
    assert shape_of(operations[0]) == shape_of(operations[1])
    versions = ["_row_created_at_version", "_row_last_updated_at_version"] if stable else []
    mine, other = (lance.dataset(dataset.uri).to_table(columns=["id", *versions]) for dataset in made)
    assert mine == other


def test_an_update_of_an_indexed_column_reduces_coverage_as_in_the_reference(tmp_path: Path) -> None:
    covered = []
    for name in ("ours", "theirs"):
        uri = str(tmp_path / name)
        dataset = lance.write_dataset(table(), uri, max_rows_per_file=10)
        dataset.create_scalar_index("id", "BTREE")
        dataset.create_scalar_index("v", "BTREE")
        (lance_ops if name == "ours" else lance).dataset(uri).update({"v": "v + 100"}, "id = 3")
        indices = lance_ops.dataset(uri).list_indices()
        covered.append({index["name"]: set(index["fragment_ids"]) for index in indices})
        assert lance.dataset(uri).to_table(filter="v > 50")["id"].to_pylist() == [3]
        assert lance_ops.dataset(uri).to_table(filter="v > 50")["id"].to_pylist() == [3]
    assert covered[0] == covered[1]

"""Write a table with pylance, by every operation that its API commits."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["rows", "write_history"]


def rows(start: int, stop: int) -> pa.Table:
    """Return rows of a number, a text and a list."""
    numbers = range(start, stop)
    return pa.table(
        {
            "a": pa.array(numbers, pa.int64()),
            "b": pa.array([f"s{number}" for number in numbers]),
            "l": pa.array([[number] for number in numbers], pa.list_(pa.int64())),
        }
    )


def write_history(lance: Any, uri: str, *, stable_row_ids: bool) -> None:
    """Commit about thirty versions."""
    lance.write_dataset(rows(0, 100), uri, enable_stable_row_ids=stable_row_ids, max_rows_per_file=40)
    lance.write_dataset(rows(100, 150), uri, mode="append")
    dataset = lance.dataset(uri)
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("b", "BITMAP")
    dataset.create_scalar_index("a", "ZONEMAP", name="zones")
    dataset.tags.create("early", 3)
    lance.write_dataset(rows(150, 200), uri, mode="append")
    dataset = lance.dataset(uri)
    dataset.delete("a in (3, 4, 120)")
    dataset.delete("a < 40")
    dataset.update({"b": "'x'"}, where="a = 50")
    dataset = lance.dataset(uri)
    dataset.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(rows(195, 210))
    dataset = lance.dataset(uri)
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset.optimize.optimize_indices()
    dataset.optimize.compact_files()
    dataset = lance.dataset(uri)
    dataset.add_columns({"c": "a * 2"})
    dataset.add_columns(pa.schema([("n", pa.int32())]))
    dataset.alter_columns({"path": "c", "name": "d"})
    dataset.alter_columns({"path": "d", "data_type": pa.int32()})
    dataset.drop_columns(["d"])
    dataset.update_config({"k": "v"})
    dataset.update_metadata({"m": "n"})
    dataset.update_schema_metadata({"x": "y"})
    dataset.update_field_metadata({"b": {"f": "g"}})
    dataset.delete_config_keys(["k"])
    dataset.drop_index("zones")
    lance.dataset(uri, version=5).restore()
    lance.write_dataset(pa.table({"q": range(10)}), uri, mode="overwrite")
    lance.write_dataset(pa.table({"q": range(10)}), uri, mode="append", data_storage_version="2.1")
    lance.dataset(uri).truncate_table()

"""The measured operations, in the order in which they happen to one table.

The table has 200,000 rows in eight fragments, and seven more fragments of one row each after the appends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["ALL_OPERATIONS", "NUM_ROWS", "Operation", "Table", "operations_chosen"]

NUM_ROWS = 200_000
_FRAGMENTS = 8
_MORE_APPENDS = 6
_TAKEN = 10


@dataclass(frozen=True)
class Table:
    """A table of one contender. `num_rows` is how many rows it is created with."""

    module: ModuleType
    uri: str
    options: Mapping[str, str]
    num_rows: int = NUM_ROWS

    def open(self, **how: Any) -> Any:
        """Return a new handle."""
        return self.module.dataset(self.uri, storage_options=dict(self.options), **how)

    def write(self, rows: pa.Table, **how: Any) -> None:
        """Write rows with `write_dataset`."""
        self.module.write_dataset(rows, self.uri, storage_options=dict(self.options), **how)

    def rows(self, ids: np.ndarray) -> pa.Table:
        """Return rows with these ids."""
        rng = np.random.default_rng(len(ids))
        return pa.table(
            {
                "id": ids,
                "value": rng.normal(size=len(ids)),
                "text": pa.array([f"row {number:09d} of the table that is measured" for number in ids.tolist()]),
            }
        )


@dataclass(frozen=True)
class Operation:
    """`run` is measured. It takes the table and what `prepare` returned, which is not measured.

    `writes` says whether the operation may change the table's rows.
    """

    name: str
    run: Callable[[Table, Any], object]
    prepare: Callable[[Table], object] = lambda table: None
    writes: bool = True


def _write(table: Table, rows: pa.Table) -> None:
    table.write(rows, max_rows_per_file=-(-rows.num_rows // _FRAGMENTS))


def _append(table: Table, rows: pa.Table) -> None:
    table.write(rows, mode="append")


def _append_more(table: Table) -> None:
    for number in range(_MORE_APPENDS):
        _append(table, table.rows(np.array([table.num_rows + 1 + number])))


def _warm(table: Table) -> Any:
    dataset = table.open()
    dataset.take(_places(table, 1))
    return dataset


def _places(table: Table, seed: int) -> list[int]:
    places: list[int] = np.random.default_rng(seed).integers(0, table.num_rows, _TAKEN).tolist()
    return places


def _rows_to_merge(table: Table) -> pa.Table:
    """Return 1,000 rows, half of them new."""
    half = min(500, table.num_rows // 10)
    there = np.random.default_rng(2).choice(table.num_rows, half, replace=False)
    return table.rows(np.concatenate([there, np.arange(half) + 2 * table.num_rows]))


def _merge(table: Table, rows: pa.Table) -> None:
    merge = table.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows)


def _tag(table: Table, _: object) -> None:
    table.open().tags.create("measured", 3)


def _remove_tag(table: Table) -> None:
    table.open().tags.delete("measured")


def _clean_up(table: Table, _: object) -> None:
    table.open().cleanup_old_versions(timedelta(0))


ALL_OPERATIONS = (
    Operation("first write", _write, lambda table: table.rows(np.arange(table.num_rows))),
    Operation("append 1 row", _append, lambda table: table.rows(np.array([table.num_rows]))),
    Operation("open", lambda table, _: table.open().version, _append_more, writes=False),
    Operation("count", lambda table, _: table.open().count_rows(), writes=False),
    Operation("scan", lambda table, _: table.open().to_table(), writes=False),
    Operation("filter, no index", lambda table, _: table.open().to_table(filter="id % 1000 = 7"), writes=False),
    Operation("take 10, handle warm", lambda table, dataset: dataset.take(_places(table, 3)), _warm, writes=False),
    Operation("take 10, handle new", lambda table, _: table.open().take(_places(table, 4)), writes=False),
    Operation("create BTREE", lambda table, _: table.open().create_scalar_index("id", "BTREE")),
    Operation("filter by index", lambda table, _: table.open().to_table(filter="id = 77"), writes=False),
    Operation("delete 1%", lambda table, _: table.open().delete("id % 100 = 5")),
    Operation("update 100 rows", lambda table, _: table.open().update({"value": "0.5"}, where="id % 2000 = 9")),
    Operation("merge 1,000 rows", _merge, _rows_to_merge),
    Operation("add column", lambda table, _: table.open().add_columns({"twice": "value * 2"})),
    Operation("tag", _tag, writes=False),
    Operation("checkout version", lambda table, _: table.open().checkout_version(2).version, writes=False),
    Operation("versions", lambda table, _: len(table.open().versions()), writes=False),
    Operation("restore", lambda table, _: table.open(version=9).restore()),
    Operation("compact", lambda table, _: table.open().optimize.compact_files()),
    Operation("clean up", _clean_up, _remove_tag),
    Operation(
        "overwrite",
        lambda table, rows: table.write(rows, mode="overwrite"),
        lambda table: table.rows(np.arange(table.num_rows // _FRAGMENTS)),
    ),
)


def operations_chosen(words: Sequence[str]) -> tuple[Operation, ...]:
    """Return the operations with one of these words in their name, all without words.

    Raises `ValueError` for a word that is in no name.
    """
    for word in words:
        if not any(word in operation.name for operation in ALL_OPERATIONS):
            raise ValueError(f"{word!r} is in none of {', '.join(operation.name for operation in ALL_OPERATIONS)}")
    return tuple(each for each in ALL_OPERATIONS if not words or any(word in each.name for word in words))

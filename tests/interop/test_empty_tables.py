"""Tables without rows answer every call as the reference's do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

EMPTY = pa.schema([("a", pa.int64()), ("s", pa.string())]).empty_table()
ONE = pa.table({"a": [1], "s": ["x"]})


def shape(dataset: Any) -> tuple[int, int]:
    return dataset.count_rows(), len(dataset.get_fragments())


def merge(dataset: Any) -> Any:
    return dataset.merge_insert("a").when_not_matched_insert_all().execute(ONE)["num_inserted_rows"]


def emptied(dataset: Any) -> Any:
    dataset.insert(ONE)
    dataset.delete("true")
    return shape(dataset), dataset.to_table().num_rows, dataset.optimize.compact_files().fragments_removed


CALLS: dict[str, Callable[[Any], Any]] = {
    "shape": shape,
    "to_table": lambda dataset: dataset.to_table().shape,
    "to_batches": lambda dataset: list(dataset.to_batches()),
    "head": lambda dataset: dataset.head(2).shape,
    "take nothing": lambda dataset: dataset.take([]).shape,
    "sample nothing": lambda dataset: dataset.sample(0).shape,
    "filter": lambda dataset: dataset.to_table(filter="a > 1").shape,
    "delete": lambda dataset: dataset.delete("a > 1")["num_deleted_rows"],
    "update": lambda dataset: dataset.update({"a": "1"})["num_rows_updated"],
    "compact": lambda dataset: dataset.optimize.compact_files().fragments_added,
    "add columns": lambda dataset: (dataset.add_columns({"b": "a + 1"}), dataset.to_table().shape)[1],
    "index": lambda dataset: (dataset.create_scalar_index("a", "BTREE"), dataset.to_table(filter="a = 1").num_rows)[1],
    "merge": merge,
    "append nothing": lambda dataset: (dataset.insert(EMPTY), shape(dataset))[1],
    "overwrite": lambda dataset: (dataset.insert(EMPTY, mode="overwrite"), shape(dataset))[1],
    "emptied": emptied,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_table_without_rows_answers_as_in_the_reference(tmp_path: Path, name: str) -> None:
    ours, theirs = (
        CALLS[name](library.write_dataset(EMPTY, str(tmp_path / library.__name__))) for library in (lance_ops, lance)
    )
    assert ours == theirs


def test_a_row_of_an_empty_table_and_a_fragment_without_rows_are_refused(tmp_path: Path) -> None:
    for library in (lance_ops, lance):
        uri = str(tmp_path / library.__name__)
        dataset = library.write_dataset(EMPTY, uri)
        with pytest.raises((OSError, ValueError)):
            dataset.take([0])
        with pytest.raises((OSError, ValueError)):
            library.LanceFragment.create(uri, EMPTY)
